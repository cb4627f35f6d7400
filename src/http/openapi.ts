import type { FastifyDynamicSwaggerOptions } from "@fastify/swagger";
import type { HttpOptions } from "./deps.js";

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
  readonly schema?: { readonly type?: string };
}
interface Operation {
  readonly requestBody?: {
    required: boolean;
    readonly content: Record<string, { readonly schema: { readonly required?: readonly string[] } }>;
  };
  readonly parameters?: readonly Parameter[];
}
interface Document {
  readonly paths: Record<string, Record<string, Operation>>;
}

/**
 * What the generator cannot know: bodies of which nothing is required may be left out, and maps are sent as
 * `tags[key]=value`.
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
  }
  return document;
}
