import { readDocument } from "./openapi-document.js";
import { type Schema, type Wrong, wrongs } from "./wrong-values.js";

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly schema: Schema;
}
interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> };
}
export interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

export interface BadInput {
  /** The operation, the field and what is wrong with it. */
  readonly what: string;
  readonly method: string;
  /** The URL with its query. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly text?: string;
  readonly code: "bad_request" | "invalid_json" | "unsupported_media_type";
  /** A detail has to begin with it. */
  readonly path?: string;
}

const json = { "content-type": "application/json" };

/**
 * Every field of every operation of the document in every wrong kind. `names` stand for `{id_or_name}` and
 * `{id}`, by first part of the path.
 */
export function badInputs(document: OpenApi, names: Readonly<Record<string, string>>): BadInput[] {
  return Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([method, operation]) => {
      const url = path.replace(/\{\w+\}/, names[path.split("/")[1] ?? ""] ?? "none");
      return ofOperation(operation, { method: method.toUpperCase(), url });
    }),
  );
}

type Target = Pick<BadInput, "method" | "url">;

function ofOperation(operation: Operation, target: Target): BadInput[] {
  const name = operation.operationId;
  const schema = operation.requestBody?.content["application/json"]?.schema;
  const bodies = schema
    ? [...wrongs(schema).map((wrong) => ofBody(name, target, wrong)), ...unreadable(name, target)]
    : [];
  const queries = (operation.parameters ?? [])
    .filter((parameter) => parameter.in === "query")
    .flatMap((parameter) =>
      wrongQueries(parameter).map((query) => ({
        ...target,
        what: `${name}: ?${query.slice(0, 60)}`,
        url: `${target.url}?${query}`,
        headers: {},
        code: "bad_request" as const,
        path: query.includes("=%") ? "query" : parameter.name,
      })),
    );
  return [...bodies, ...queries];
}

const ofBody = (name: string, target: Target, { what, path, value }: Wrong): BadInput => ({
  ...target,
  what: `${name}: ${path || "body"} ${what}`,
  headers: json,
  text: JSON.stringify(value),
  code: "bad_request",
  path: path || "body",
});

function unreadable(name: string, target: Target): BadInput[] {
  const texts: readonly [string, string, BadInput["code"]][] = [
    ["cut off", '{"size": 1', "invalid_json"],
    ["not JSON", "size=1", "invalid_json"],
    ["a lone byte", "\u0000", "invalid_json"],
    ["a prototype", '{"__proto__": {"size": 1}}', "invalid_json"],
    ["null", "null", "bad_request"],
    [
      "nested a hundred thousand deep",
      `${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`.slice(0, 250_000),
      "invalid_json",
    ],
    ["nested 200 deep", `${'{"browser_policy":'.repeat(200)}1${"}".repeat(200)}`, "bad_request"],
  ];
  const types = [
    "text/plain",
    "application/xml",
    "multipart/form-data; boundary=x",
    "application/x-www-form-urlencoded",
    "nonsense",
    "application/jsonx",
  ];
  return [
    ...texts.map(([what, text, code]) => ({
      ...target,
      what: `${name}: body ${what}`,
      headers: json,
      text,
      code,
    })),
    ...types.map((type) => ({
      ...target,
      what: `${name}: ${type}`,
      headers: { "content-type": type },
      text: "{}",
      code: "unsupported_media_type" as const,
    })),
  ];
}

/** Values of a query that are texts of no number, no boolean and so on. */
function wrongQueries({ name, schema }: Parameter): string[] {
  // One that takes a list takes it also as texts, each of words with commas between.
  if (schema["anyOf"]) return [`${name}=`, `${name}=a b`, `${name}=a,,b`, `${name}=a&${name}=b+c`];
  const twice = schema.type === "object" ? [] : [`${name}=1&${name}=2`];
  const wrongTexts = (): readonly string[] => {
    if (schema.enum) return ["no-such-value", ""];
    if (schema.type === "integer")
      return ["", "abc", "1.5", "NaN", "-1", "1e400", String(Number(schema["maximum"]) * 10), "%zz"];
    if (schema.type === "boolean") return ["maybe", "", "2", "%c3%28"];
    if (schema.type === "object") return ["text"];
    return ["x".repeat(Number(schema["maxLength"]) + 1)];
  };
  const tooMany =
    schema.type === "object"
      ? [
          Array.from({ length: Number(schema["maxProperties"]) + 1 }, (_, at) => `${name}[k${at}]=v`).join(
            "&",
          ),
        ]
      : [];
  return [...wrongTexts().map((text) => `${name}=${text}`), ...twice, ...tooMany];
}

export interface Answer {
  readonly status: number;
  readonly body: unknown;
}

/** What is wrong with an answer to a bad input; undefined where it is as it has to be. */
export function findFault({ what, code, path }: BadInput, { status, body }: Answer): string | undefined {
  const {
    code: got,
    message,
    details,
  } = (body ?? {}) as { code?: unknown; message?: unknown; details?: { code: string; message: string }[] };
  if (status !== 400 || got !== code) return `${what}: answered ${status} ${String(got)}`;
  if (typeof message !== "string") return `${what}: has no message`;
  if (path === undefined) return undefined;
  if (!details?.some((detail) => detail.message.startsWith(path)))
    return `${what}: no detail about ${path} in ${JSON.stringify(details)}`;
  const odd = details.find((detail) => detail.code !== "invalid_input" || jargon.test(detail.message));
  return odd && `${what}: ${odd.message}`;
}

/** How a schema's validator speaks; "in plain words" is the opposite. */
const jargon =
  /\bNOT\b|must match|schema|additional propert|propert(y|ies)\b|instancePath|keyword|anyOf|undefined/;

interface Live {
  readonly url: string;
  readonly key: string;
  /** The names are those of `badInputs`. */
  readonly names: Readonly<Record<string, string>>;
}

/** Requests that are on their way at once: one waits for its answer more than it computes. */
const atOnce = 8;

/**
 * Sends every bad input to a running server, by its own document; gives how many there were and what was
 * wrong with the answers.
 */
export async function tryBadInputs({ url, key, names }: Live): Promise<{ tried: number; faults: string[] }> {
  const document = await readDocument<OpenApi>(url);
  const inputs = badInputs(document, names);
  const left = [...inputs];
  const faults: string[] = [];
  const work = async (): Promise<void> => {
    for (let input = left.pop(); input; input = left.pop()) {
      const fault = findFault(input, await answerTo(input, { url, key }));
      if (fault !== undefined) faults.push(fault);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return { tried: inputs.length, faults };
}

async function answerTo(
  { method, headers, text, url: path }: BadInput,
  { url, key }: Omit<Live, "names">,
): Promise<Answer> {
  const reply = await fetch(`${url}${path}`, {
    method,
    headers: { ...headers, authorization: `Bearer ${key}` },
    ...(text !== undefined && { body: text }),
  });
  const answered = await reply.text();
  const isJson = reply.headers.get("content-type")?.startsWith("application/json") ?? false;
  return { status: reply.status, body: isJson ? JSON.parse(answered) : undefined };
}
