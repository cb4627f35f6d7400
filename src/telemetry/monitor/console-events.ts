import { type Frame, frameHeadOf } from "../../browser/cdp/frame.js";
import { Truncation } from "./truncation.js";
import {
  flagIn,
  numberIn,
  present,
  recordIn,
  recordsIn,
  type ProtocolRecord,
  textIn,
} from "./protocol-record.js";
import type { Reading } from "./reading.js";

const longestTextBytes = 8192;
const longestArgumentBytes = 2048;
const mostArguments = 20;
const mostCallFrames = 20;
/** Callers of callers, where a stack goes on behind a promise. */
const mostParents = 2;
const mostProperties = 10;

/** `Runtime.consoleAPICalled`. Names and values are those of Chromium (docs/telemetry.md#console). */
export function consoleCall(params: ProtocolRecord): Reading {
  const truncation = new Truncation();
  const all = recordsIn(params, "args");
  const texts = truncation.list(all, mostArguments).map(textOf);
  const level = textIn(params, "type") ?? "log";
  const data = present({
    level,
    text: truncation.text(texts[0] ?? "", longestTextBytes),
    args: texts.map((text) => truncation.text(text, longestArgumentBytes)),
    stack_trace: stackIn(params, truncation),
  });
  return { type: typeOf(level), category: "console", data, wasCut: truncation.wasCut };
}

/** `Runtime.exceptionThrown`. */
export function exception(params: ProtocolRecord): Reading {
  const truncation = new Truncation();
  const details = recordIn(params, "exceptionDetails");
  const thrown = recordIn(details, "exception");
  const [text = "Uncaught"] = [textIn(details, "text")];
  const what = Object.keys(thrown).length === 0 ? "" : textOf(thrown);
  const data = present({
    text: truncation.text(what === "" || text.endsWith(what) ? text : `${text} ${what}`, longestTextBytes),
    line: numberIn(details, "lineNumber"),
    column: numberIn(details, "columnNumber"),
    source_url: truncation.url(textIn(details, "url")),
    stack_trace: stackIn(details, truncation),
  });
  return { type: "console_error", category: "console", data, wasCut: truncation.wasCut };
}

const typeOf = (level: string): string => (level === "error" ? "console_error" : "console_log");

const readBytes = 16 * 1024;
/** The order in which Chromium 156 writes them. */
const beginning =
  /"params":\{"type":"([a-zA-Z]+)","args":\[\{"type":"string","value":"((?:[^"\\]|\\u[0-9a-fA-F]{4}|\\[^u])*)/;

/** What can be told of a call that is too long to be read: how its first text begins. */
export function longConsoleCall(frame: Frame): Reading | undefined {
  const head = frameHeadOf(frame).toString("utf8", 0, readBytes);
  const [, level, written] = beginning.exec(head) ?? [];
  if (level === undefined || written === undefined) return undefined;
  const text = new Truncation().text(String(JSON.parse(`"${written}"`)), longestTextBytes);
  return { type: typeOf(level), category: "console", data: { level, text, args: [text] }, wasCut: true };
}

/** A value as the console would show it, by what Chromium has sent with it: no getter of a page is called. */
function textOf(value: ProtocolRecord): string {
  const { value: plain, unserializableValue, type, subtype } = value;
  if (typeof plain === "string") return plain;
  if (typeof unserializableValue === "string") return unserializableValue;
  if (subtype === "null") return "null";
  if (type === "undefined") return "undefined";
  if (typeof plain === "number" || typeof plain === "boolean") return String(plain);
  const preview = recordIn(value, "preview");
  const isPlain = type === "object" && (subtype === undefined || subtype === "array");
  return isPlain && recordsIn(preview, "properties").length > 0
    ? previewOf(preview)
    : (textIn(value, "description") ?? String(type));
}

function previewOf(preview: ProtocolRecord): string {
  const isArray = textIn(preview, "subtype") === "array";
  const properties = recordsIn(preview, "properties");
  const shown = properties.slice(0, mostProperties).map((property) => {
    const value = textIn(property, "value") ?? textIn(property, "type") ?? "";
    return isArray ? value : `${textIn(property, "name")}: ${value}`;
  });
  const isMore = flagIn(preview, "overflow") === true || properties.length > mostProperties;
  const inner = [...shown, ...(isMore ? ["…"] : [])].join(", ");
  return isArray ? `[${inner}]` : `{${inner}}`;
}

function stackIn(params: ProtocolRecord, truncation: Truncation, parents = 0): ProtocolRecord | undefined {
  const stack = recordIn(params, parents === 0 ? "stackTrace" : "parent");
  if (!Array.isArray(stack["callFrames"])) return undefined;
  const callFrames = truncation
    .list(recordsIn(stack, "callFrames"), mostCallFrames)
    .map((frame) =>
      present({
        functionName: truncation.optional(textIn(frame, "functionName"), 256),
        scriptId: textIn(frame, "scriptId"),
        url: truncation.optional(truncation.url(textIn(frame, "url")), 1024),
        lineNumber: numberIn(frame, "lineNumber"),
        columnNumber: numberIn(frame, "columnNumber"),
      }),
    );
  const parent = parents < mostParents ? stackIn(stack, truncation, parents + 1) : undefined;
  return present({ callFrames, description: textIn(stack, "description"), parent });
}
