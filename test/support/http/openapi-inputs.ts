/** The part of a JSON Schema (as it stands in the OpenAPI document) that inputs are made from. */
export interface Schema {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly propertyNames?: { readonly minLength?: number; readonly maxLength?: number };
  readonly items?: Schema;
  readonly pattern?: string;
  readonly [bound: string]: unknown;
}
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

/** A value that does not fit, and the path at which the server should find fault. */
interface Wrong {
  readonly what: string;
  readonly path: string;
  readonly value: unknown;
}
export interface BadInput {
  /** The operation, the field and what is wrong with it. */
  readonly what: string;
  readonly method: string;
  /** With its query. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly text?: string;
  readonly code: "bad_request" | "invalid_json" | "unsupported_media_type";
  /** A detail has to begin with it. */
  readonly path?: string;
}

const ofEveryType: Readonly<Record<string, unknown>> = {
  string: "text",
  integer: 7,
  number: 1.5,
  boolean: true,
  null: null,
  array: [],
  object: {},
};
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

/** The least that fits a schema. */
export function sample(schema: Schema): unknown {
  if (schema.enum) return schema.enum[0];
  if (schema.anyOf) return sample(schema.anyOf[0] ?? {});
  if (schema.type === "object") {
    return Object.fromEntries(
      (schema.required ?? []).map((name) => [name, sample(schema.properties?.[name] ?? {})]),
    );
  }
  if (schema.type === "array")
    return Array.from({ length: Number(schema["minItems"] ?? 0) }, () => sample(schema.items ?? {}));
  if (schema.type === "string") return "a".repeat(Math.max(1, Number(schema["minLength"] ?? 1)));
  if (schema.type === "integer" || schema.type === "number") return Number(schema["minimum"] ?? 1);
  return schema.type === "boolean" ? false : null;
}

function wrongs(schema: Schema): Wrong[] {
  return [
    ...ofType(schema),
    ...ofNumber(schema),
    ...ofString(schema),
    ...ofArray(schema),
    ...ofObject(schema),
    ...ofMap(schema),
    ...ofAlternatives(schema),
  ];
}

const here = (what: string, value: unknown): Wrong => ({ what, path: "", value });

function ofType(schema: Schema): Wrong[] {
  if (schema.enum)
    return [
      here("is not of the set", "no such value"),
      ...[7, true, null, [], {}].map((value) => here(`is ${JSON.stringify(value)}`, value)),
    ];
  const types = schema.anyOf ? schema.anyOf.map((choice) => choice.type) : [schema.type];
  if (types.includes(undefined)) return [];
  const fits = (type: string): boolean =>
    types.includes(type) || (type === "integer" && types.includes("number"));
  return Object.entries(ofEveryType)
    .filter(([type]) => !fits(type))
    .map(([type, value]) => here(`is of type ${type}`, value));
}

function ofNumber({ minimum, maximum }: Schema): Wrong[] {
  const below =
    typeof minimum === "number" ? [here("is below its least", minimum - 1), here("is far below", -1e15)] : [];
  const above =
    typeof maximum === "number" ? [here("is above its most", maximum + 1), here("is far above", 1e15)] : [];
  return [...below, ...above];
}

function ofString({ type, minLength, maxLength, pattern }: Schema): Wrong[] {
  if (type !== "string") return [];
  const short = typeof minLength === "number" && minLength > 0 ? [here("is too short", "")] : [];
  const long =
    typeof maxLength === "number"
      ? [
          here("is too long", "x".repeat(maxLength + 1)),
          here("is far too long", "x".repeat(Math.max(100_000, maxLength + 1000))),
        ]
      : [];
  const odd =
    typeof pattern === "string"
      ? ["", "a b", "é", "a\nb", "a\u0000b", "<script>", "x".repeat(300), "../a"]
      : [];
  const unfit = odd.filter((text) => !new RegExp(String(pattern), "u").test(text));
  return [...short, ...long, ...unfit.map((text) => here(`is ${JSON.stringify(text.slice(0, 12))}`, text))];
}

function ofArray({ type, items, minItems, maxItems }: Schema): Wrong[] {
  if (type !== "array" || !items) return [];
  const few = typeof minItems === "number" && minItems > 0 ? [here("has too few entries", [])] : [];
  const many =
    typeof maxItems === "number"
      ? [
          here(
            "has too many entries",
            Array.from({ length: maxItems + 1 }, () => sample(items)),
          ),
        ]
      : [];
  return [
    ...few,
    ...many,
    ...wrongs(items).map((wrong) => ({ ...wrong, path: join("[0]", wrong.path), value: [wrong.value] })),
  ];
}

function ofObject(schema: Schema): Wrong[] {
  const { properties = {}, required = [], additionalProperties } = schema;
  if (schema.type !== "object") return [];
  const whole = sample(schema) as Record<string, unknown>;
  const missing = required.map((name) => {
    const { [name]: _left, ...rest } = whole;
    return { what: "is left out", path: name, value: rest };
  });
  const unknown = additionalProperties === false ? ["no_such_field", "constructor", "x".repeat(5000)] : [];
  const extra = unknown.map((name) => ({
    what: "is not known",
    path: name.slice(0, 100),
    value: { ...whole, [name]: 1 },
  }));
  const nested = Object.entries(properties).flatMap(([name, inner]) =>
    wrongs(inner).map((wrong) => ({
      ...wrong,
      path: join(name, wrong.path),
      value: { ...whole, [name]: wrong.value },
    })),
  );
  return [...missing, ...extra, ...nested];
}

function ofMap({ type, additionalProperties, propertyNames, maxProperties }: Schema): Wrong[] {
  if (type !== "object" || typeof additionalProperties !== "object") return [];
  const value = sample(additionalProperties);
  const nested = wrongs(additionalProperties).map((wrong) => ({
    ...wrong,
    path: join("k", wrong.path),
    value: { k: wrong.value },
  }));
  const many =
    typeof maxProperties === "number"
      ? [
          here(
            "has too many entries",
            Object.fromEntries(Array.from({ length: maxProperties + 1 }, (_, at) => [`k${at}`, value])),
          ),
        ]
      : [];
  const names = propertyNames
    ? [
        here("has an empty name", { "": value }),
        here("has a long name", { ["x".repeat(Number(propertyNames.maxLength) + 1)]: value }),
      ]
    : [];
  return [...nested, ...many, ...names];
}

const ofAlternatives = ({ anyOf = [] }: Schema): Wrong[] =>
  anyOf
    .filter((choice) => choice.type === "object" || choice.type === "array")
    .flatMap((choice) => wrongs(choice).filter((wrong) => wrong.path !== ""));

const join = (outer: string, inner: string): string =>
  inner === "" || inner.startsWith("[") ? `${outer}${inner}` : `${outer}.${inner}`;

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
  /** As for `badInputs`. */
  readonly names: Readonly<Record<string, string>>;
}

/**
 * Sends every bad input to a running server, by its own document; gives how many there were and what was
 * wrong with the answers.
 */
export async function tryBadInputs({ url, key, names }: Live): Promise<{ tried: number; faults: string[] }> {
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as OpenApi;
  const inputs = badInputs(document, names);
  const faults: string[] = [];
  for (const input of inputs) {
    const { method, headers, text } = input;
    const reply = await fetch(`${url}${input.url}`, {
      method,
      headers: { ...headers, authorization: `Bearer ${key}` },
      ...(text !== undefined && { body: text }),
    });
    const answered = await reply.text();
    const body: unknown = reply.headers.get("content-type")?.startsWith("application/json")
      ? JSON.parse(answered)
      : undefined;
    const fault = findFault(input, { status: reply.status, body });
    if (fault !== undefined) faults.push(fault);
  }
  return { tried: inputs.length, faults };
}
