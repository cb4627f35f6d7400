import type { FastifyDynamicSwaggerOptions } from "@fastify/swagger";
import type { HttpOptions } from "../deps.js";

const license = { name: "Apache-2.0", url: "https://www.apache.org/licenses/LICENSE-2.0" };

/** The document's frame; operations and components come from the routes and the schemas that validate. */
export const describeApi = ({
  publicUrl,
  version,
}: Pick<HttpOptions, "publicUrl" | "version">): FastifyDynamicSwaggerOptions => ({
  openapi: {
    openapi: "3.1.0",
    info: {
      title: "Remuda",
      version,
      description: "Keeps pools of warm Chromium browsers and lends them out.",
      license,
    },
    ...(publicUrl !== undefined && { servers: [{ url: publicUrl }] }),
    components: { securitySchemes: { key: { type: "http", scheme: "bearer" } } },
    security: [{ key: [] }],
  },
  stripBasePath: false,
  refResolver: { buildLocalReference: (json) => String(json.$id) },
  transformObject: (made) =>
    ("openapiObject" in made ? finish(made.openapiObject as Document) : made.swaggerObject) as never,
});

interface Parameter {
  readonly in: string;
  readonly name?: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema?: { readonly type?: string; readonly maxLength?: number };
}
interface DocumentedOperation {
  readonly operationId?: string;
  readonly requestBody?: {
    required: boolean;
    readonly content: Record<string, { readonly schema: { readonly required?: readonly string[] } }>;
  };
  parameters?: readonly Parameter[];
}
interface Document {
  readonly paths: Record<string, Record<string, DocumentedOperation>>;
}

/**
 * Read by src/base/trace-context.ts. They stand in no schema that validates, since one that is wrong is
 * ignored.
 */
const traceHeaders: readonly Parameter[] = [
  header("traceparent", {
    maxLength: 256,
    description:
      "The caller's span, as W3C Trace Context writes it. Where the session's telemetry is exported, spans of the call and of what happens in the browser become its children. Ignored where it is malformed or not sampled.",
  }),
  header("tracestate", {
    maxLength: 512,
    description:
      "Passed on with the spans, as W3C Trace Context describes. Ignored where it is malformed or longer.",
  }),
];
const traced = new Set(["acquireBrowser", "createBrowser"]);

function header(
  name: string,
  { maxLength, description }: { maxLength: number; description: string },
): Parameter {
  return { in: "header", name, required: false, description, schema: { type: "string", maxLength } };
}

/**
 * What the generator cannot know: bodies of which nothing is required may be left out, and maps are sent as
 * `tags[key]=value`; headers that are read and validated nowhere.
 */
function finish(document: Document): Document {
  for (const operation of Object.values(document.paths).flatMap((path) => Object.values(path))) {
    const body = operation.requestBody;
    if (body)
      body.required = Object.values(body.content).some(({ schema }) => (schema.required ?? []).length > 0);
    const maps = (operation.parameters ?? []).filter(
      (parameter) => parameter.in === "query" && parameter.schema?.type === "object",
    );
    for (const map of maps) Object.assign(map, { style: "deepObject", explode: true });
    if (traced.has(operation.operationId ?? ""))
      operation.parameters = [...(operation.parameters ?? []), ...traceHeaders];
  }
  return document;
}
