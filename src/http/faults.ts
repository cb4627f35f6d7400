import type { ErrorObject } from "ajv";
import type { Detail } from "../base/errors.js";
import { bounds } from "../spec/bodies.js";
import { curlPatterns } from "../spec/curl.js";
import { credentialBounds } from "../vault/credentials/credential.js";

/** What Ajv found, in words for a person who does not know JSON Schema; nothing of a value is repeated. */
export function faultsOf(found: readonly ErrorObject[]): Detail[] {
  const messages = foldAlternatives(found)
    .filter((error) => error.keyword !== "propertyNames")
    .map(messageOf);
  return [...new Set(messages)].map((message) => ({ code: "invalid_input", message }));
}

/**
 * A value that fits none of several alternatives (here always a type or null) brings the faults of each.
 * Where it has a type of none of them, one fault names all types; else only the faults inside the alternative
 * that was meant are of use.
 */
function foldAlternatives(found: readonly ErrorObject[]): ErrorObject[] {
  return found.filter((error) => error.keyword === "anyOf").reduce(foldOne, [...found]);
}

function foldOne(found: ErrorObject[], choice: ErrorObject): ErrorObject[] {
  const isInside = (error: ErrorObject): boolean => error.schemaPath.startsWith(`${choice.schemaPath}/`);
  const isOfType = (error: ErrorObject): boolean =>
    isInside(error) && error.keyword === "type" && error.instancePath === choice.instancePath;
  const types = found.filter(isOfType);
  const kept = found.filter((error) => error !== choice && !isOfType(error));
  if (kept.some((error) => isInside(error))) return kept;
  return [
    ...kept,
    { ...choice, keyword: "type", params: { type: types.map((error) => error.params["type"] as string) } },
  ];
}

function messageOf(error: ErrorObject): string {
  const path = pathOf(error.instancePath);
  if (error.keyword === "required")
    return `${join(path, String(error.params["missingProperty"]))}: is required`;
  if (error.keyword === "additionalProperties") {
    return `${join(path, String(error.params["additionalProperty"]))}: is not a known field`;
  }
  const where = path === "" ? "body" : path;
  if (error.propertyName !== undefined) return `${where}: each name ${wordsOf(error)}`;
  return `${where}: ${wordsOf(error)}`;
}

function wordsOf({ keyword, params }: ErrorObject): string {
  const limit = String(params["limit"]);
  switch (keyword) {
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
      return patternWords.get(String(params["pattern"])) ?? "does not have the form that is expected";
    default:
      return "is not valid";
  }
}

const patternWords: ReadonlyMap<string, string> = new Map([
  [curlPatterns.method, "must be 1 to 20 letters"],
  [
    curlPatterns.headerValue,
    "must have no characters but those of a header: no line breaks, none beyond Latin-1",
  ],
  [curlPatterns.headerName, "must be 1 to 256 of the characters that RFC 9110 (5.6.2) has in names"],
  [credentialBounds.fieldName, "must be a letter and up to 63 letters, digits and underscores after it"],
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
