import { isRecord } from "../../base/is-record.js";
import { isText, isTexts } from "../../base/is-text.js";

/** One value of an event. */
export type FieldValue = string | number | boolean | readonly string[];

/** An argument is not what its command takes. */
export const wrong = Symbol("wrong");

/** How one field of an event is made of a command's arguments. */
export interface Field {
  /** Where the argument stands; empty for all arguments together. */
  readonly path: readonly string[];
  /** Without the argument the command does not decode. */
  readonly isRequired?: true;
  /** What is told where the argument was not sent. */
  readonly absent?: FieldValue;
  /** Undefined where nothing is told of this value. */
  read(value: unknown): FieldValue | undefined | typeof wrong;
}

const pathOf = (dotted: string): string[] => (dotted === "" ? [] : dotted.split("."));

/** The argument is a value of this type, which is told as `tell` makes it. */
const field = <Value>(
  dotted: string,
  isRight: (value: unknown) => value is Value,
  tell: (value: Value) => FieldValue | undefined,
): Field => ({ path: pathOf(dotted), read: (value) => (isRight(value) ? tell(value) : wrong) });

const isBoolean = (value: unknown): value is boolean => typeof value === "boolean";
/** JSON can write numbers that are too large for any. */
const isNumber = (value: unknown): value is number => Number.isFinite(value);
const isRecords = (value: unknown): value is Record<string, unknown>[] =>
  Array.isArray(value) && value.every(isRecord);

const [leastInteger, mostInteger] = [-(2 ** 31), 2 ** 31 - 1];
/** The protocol's integers have 32 bits. */
const isInteger = (value: unknown): value is number =>
  Number.isInteger(value) && Number(value) >= leastInteger && Number(value) <= mostInteger;

export const number = (path: string): Field => field(path, isNumber, (value) => value);
export const integer = (path: string): Field => field(path, isInteger, (value) => value);
export const boolean = (path: string): Field => field(path, isBoolean, (value) => value);

const longestId = 128;
/** No half of a character is left at the end. */
export const clipped = (id: string): string =>
  id.length <= longestId ? id : id.slice(0, longestId).replace(/[\ud800-\udbff]$/, "");

export const id = (path: string): Field => field(path, isText, clipped);

const isSecondHalf = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff;
const isFirstHalf = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff;

/** In characters (code points). A text of 16 MiB is counted without a copy of it. */
function lengthOf(text: string): number {
  let pairs = 0;
  for (let at = 1; at < text.length; at += 1) {
    if (isSecondHalf(text.charCodeAt(at)) && isFirstHalf(text.charCodeAt(at - 1))) pairs += 1;
  }
  return text.length - pairs;
}

/** A secret text: nothing but its length is told. */
export const textLength = (path: string): Field => field(path, isText, lengthOf);

/** A secret text: nothing but whether there is one is told. */
export const isGiven = (path: string): Field => ({
  ...field(path, isText, (text) => text !== ""),
  absent: false,
});

export const countOfTexts = (path: string): Field => field(path, isTexts, (texts) => texts.length);
export const countOfRecords = (path: string): Field => field(path, isRecords, (records) => records.length);

const other = "other";

/**
 * What is none of the protocol's words is told as `other`: a client writes no text of its own into events.
 */
export function word(path: string, words: readonly string[]): Field {
  const known = new Set(words);
  return field(path, isText, (text) => (known.has(text) ? text : other));
}

/** Told where it is one of these; anything else is left out. */
export function only(path: string, words: readonly string[]): Field {
  const known = new Set(words);
  return field(path, isText, (text) => (known.has(text) ? text : undefined));
}

const schemes = new Set(
  "about blob chrome chrome-extension data file filesystem http https javascript view-source ws wss".split(
    " ",
  ),
);
/** Chromium drops spaces and control characters before an address. */
// oxlint-disable-next-line no-control-regex
const schemeHead = /^[\u0000-\u0020]*([a-z][a-z0-9+.-]{0,31}):/i;

/** An address: nothing but its scheme is told, and that of no known kind as `other`. */
export const scheme = (path: string): Field =>
  field(path, isText, (address) => {
    const name = schemeHead.exec(address)?.[1]?.toLowerCase();
    if (name === undefined) return undefined;
    return schemes.has(name) ? name : other;
  });

const mediaKinds = new Set("text image audio video application font model multipart message".split(" "));
const mediaKindOf = ({ mimeType }: Record<string, unknown>): string => {
  const kind = isText(mimeType) ? (mimeType.split("/", 1)[0] ?? "").trim().toLowerCase() : "";
  return mediaKinds.has(kind) ? kind : other;
};

/** Each kind once, in order; what stands behind the slash may name a file. */
export const mediaKindsOf = (path: string): Field =>
  field(path, isRecords, (items) => [...new Set(items.map(mediaKindOf))].toSorted());

/** The first of these arguments that was sent. */
export const which = (names: readonly string[]): Field =>
  field("", isRecord, (params) => names.find((name) => isRecord(params[name])));

/** Where the argument is missing, the command does not decode. */
export const required = (optional: Field): Field => ({ ...optional, isRequired: true });
