import { bounds } from "./bodies.js";
import { curlPatterns } from "./curl.js";

/** What a check of a schema has found, by Ajv or by TypeBox, whose errors are alike. */
export interface SchemaFault {
  readonly keyword: string;
  readonly schemaPath: string;
  /** A path such as `/extensions/0/name`. */
  readonly instancePath: string;
  readonly params: object;
  /** What is at fault where that is a name and not its value. */
  readonly propertyName?: string;
}

/** Where a value is wrong, as `extensions[0].name`, and empty for the whole; and in which way. */
interface Worded {
  readonly path: string;
  readonly words: string;
}

/**
 * What was found, in words for a person who does not know JSON Schema; nothing of a value is repeated. What
 * the patterns of others than `spec/` want is told by `patterns`.
 */
export const wordFaults = (
  found: readonly SchemaFault[],
  patterns: ReadonlyMap<string, string> = new Map(),
): readonly Worded[] =>
  foldAlternatives(found)
    // Both are told by a fault beside them.
    .filter(({ keyword }) => keyword !== "propertyNames" && keyword !== "boolean")
    .flatMap((fault) => worded(fault, patterns));

/**
 * A value that fits none of several alternatives (here always a type or null) brings the faults of each.
 * Where it has a type of none of them, one fault names all types; else only the faults inside the alternative
 * that was meant are of use.
 */
function foldAlternatives(found: readonly SchemaFault[]): SchemaFault[] {
  return found.filter((error) => error.keyword === "anyOf").reduce(foldOne, [...found]);
}

function foldOne(found: SchemaFault[], choice: SchemaFault): SchemaFault[] {
  const isInside = (error: SchemaFault): boolean => error.schemaPath.startsWith(`${choice.schemaPath}/`);
  const isOfType = (error: SchemaFault): boolean =>
    isInside(error) && error.keyword === "type" && error.instancePath === choice.instancePath;
  const types = found.filter(isOfType);
  const kept = found.filter((error) => error !== choice && !isOfType(error));
  if (kept.some((error) => isInside(error))) return kept;
  return [
    ...kept,
    { ...choice, keyword: "type", params: { type: types.map((error) => paramsOf(error)["type"]) } },
  ];
}

function worded(fault: SchemaFault, patterns: ReadonlyMap<string, string>): readonly Worded[] {
  // TypeBox puts a name that is at fault at the end of the path, and Ajv beside it.
  const endsInName = fault.schemaPath.endsWith("/propertyNames");
  const path = pathOf(endsInName ? parentOf(fault.instancePath) : fault.instancePath);
  const of = (names: readonly unknown[], words: string): readonly Worded[] =>
    names.map((name) => ({ path: join(path, String(name)), words }));
  const params = paramsOf(fault);
  // TypeBox names all of one object at once.
  if (fault.keyword === "required")
    return of([params["requiredProperties"] ?? params["missingProperty"]].flat(), "is required");
  if (fault.keyword === "additionalProperties")
    return of(
      [params["additionalProperties"] ?? params["additionalProperty"]].flat(),
      "is not a known field",
    );
  const words = wordsOf(fault, patterns);
  const isOfName = endsInName || fault.propertyName !== undefined;
  return [{ path, words: isOfName ? `each name ${words}` : words }];
}

const parentOf = (pointer: string): string => pointer.slice(0, pointer.lastIndexOf("/"));

const paramsOf = ({ params }: SchemaFault): Readonly<Record<string, unknown>> => ({ ...params });

function wordsOf(fault: SchemaFault, patterns: ReadonlyMap<string, string>): string {
  const params = paramsOf(fault);
  const limit = String(params["limit"]);
  switch (fault.keyword) {
    case "type":
      return `must be ${typesIn(params["type"])}`;
    case "enum":
      return `must be one of ${(params["allowedValues"] as unknown[]).join(", ")}`;
    case "minimum":
      return `must be at least ${limit}`;
    case "maximum":
      return `must be at most ${limit}`;
    case "minLength":
      return `must have at least ${count(limit, "character")}`;
    case "maxLength":
      return `must have at most ${count(limit, "character")}`;
    case "minItems":
    case "minProperties":
      return `must have at least ${count(limit, "entry")}`;
    case "maxItems":
    case "maxProperties":
      return `must have at most ${count(limit, "entry")}`;
    case "uniqueItems":
      return "must have no entry twice";
    case "pattern":
      return wordsOfPattern(String(params["pattern"]), patterns);
    default:
      return "is not valid";
  }
}

const wordsOfPattern = (pattern: string, others: ReadonlyMap<string, string>): string =>
  patternWords.get(pattern) ?? others.get(pattern) ?? "does not have the form that is expected";

const patternWords: ReadonlyMap<string, string> = new Map([
  [curlPatterns.method, "must be 1 to 20 letters"],
  [
    curlPatterns.headerValue,
    "must have no characters but those of a header: no line breaks, none beyond Latin-1",
  ],
  [curlPatterns.headerName, "must be 1 to 256 of the characters that RFC 9110 (5.6.2) has in names"],
  [bounds.namePattern, "must be 1 to 255 letters, digits, dots, underscores or hyphens"],
  [bounds.clearableNamePattern, "must be at most 255 letters, digits, dots, underscores or hyphens"],
  [bounds.tagValuePattern, "must be at most 256 letters, digits, spaces or characters of _.:/=+@-"],
]);

const typeWords: Readonly<Record<string, string>> = {
  string: "a string",
  integer: "a whole number",
  number: "a number",
  boolean: "true or false",
  object: "an object",
  array: "a list",
  null: "null",
};
const typesIn = (types: unknown): string =>
  [types]
    .flat()
    .map((type) => typeWords[String(type)] ?? String(type))
    .join(" or ");

const count = (limit: string, noun: "character" | "entry"): string =>
  limit === "1" ? `1 ${noun}` : `${limit} ${noun === "entry" ? "entries" : "characters"}`;

/** Writes a path such as `/extensions/0/name` as `extensions[0].name`. */
const pathOf = (pointer: string): string =>
  pointer
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"))
    .reduce(join, "");

const longestName = 100;
function join(path: string, name: string): string {
  const short = name.length > longestName ? `${name.slice(0, longestName)}…` : name;
  if (/^\d+$/.test(short)) return `${path}[${short}]`;
  return path === "" ? short : `${path}.${short}`;
}
