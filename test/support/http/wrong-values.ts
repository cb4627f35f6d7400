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

/** A value that does not fit, and the path at which the server should find fault. */
export interface Wrong {
  readonly what: string;
  readonly path: string;
  readonly value: unknown;
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

/** The least that fits a schema. */
function sample(schema: Schema): unknown {
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

export function wrongs(schema: Schema): Wrong[] {
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
