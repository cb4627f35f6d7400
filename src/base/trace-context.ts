import { randomBytes } from "node:crypto";
import { withoutKeys } from "./crypto/key-text.js";

/** A span of a distributed trace (W3C Trace Context): what comes of it is told as its children. */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  /** False: whoever began the trace does not want its spans. */
  readonly isSampled: boolean;
  /** What others have noted of the trace, which goes on with it as it came. */
  readonly state?: string;
}

/** Headers of a request, as Node.js gives them. */
interface TraceHeaders {
  readonly traceparent?: unknown;
  readonly tracestate?: unknown;
  readonly [name: string]: unknown;
}

/** Later versions are longer; nobody needs more. */
const longestParent = 256;
/** A longer `tracestate` is left out: nobody has to pass on more (W3C Trace Context 3.3.1.5). */
const longestState = 512;
const mostMembers = 32;

const parentFormat = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const memberFormat =
  /^([a-z0-9][a-z0-9_*/@-]{0,255})=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;

/**
 * Reads what a caller says of the trace that it is part of; undefined where that is nothing, or breaks the
 * rules (W3C Trace Context 3.2.2). Of later versions the first four fields are read.
 */
export function findTrace({ traceparent, tracestate }: TraceHeaders): TraceContext | undefined {
  if (typeof traceparent !== "string" || traceparent.length > longestParent) return undefined;
  const [, version = "ff", traceId = "", spanId = "", flags = "", rest] =
    parentFormat.exec(traceparent) ?? [];
  const isUnknown = version === "ff" || (version === "00" && rest !== undefined);
  if (isUnknown || /^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  const isSampled = (Number.parseInt(flags, 16) & 1) === 1;
  const state = stateOf(tracestate);
  return { traceId, spanId, isSampled, ...(state !== undefined && { state }) };
}

function stateOf(text: unknown): string | undefined {
  // It is kept in records and told in exported spans.
  const isKept = typeof text === "string" && text.length <= longestState && withoutKeys(text) === text;
  if (!isKept) return undefined;
  const members = text
    .split(",")
    .map((member) => member.replaceAll(/^[ \t]+|[ \t]+$/g, ""))
    .filter((member) => member !== "");
  const keys = members.map((member) => memberFormat.exec(member)?.[1]);
  const areGood = !keys.includes(undefined) && new Set(keys).size === keys.length;
  return areGood && keys.length > 0 && keys.length <= mostMembers ? members.join(",") : undefined;
}

/** A new span of the same trace. */
export const childOf = (parent: TraceContext): TraceContext => ({ ...parent, spanId: newSpanId() });

function newSpanId(): string {
  const id = randomBytes(8).toString("hex");
  return /^0+$/.test(id) ? newSpanId() : id;
}

/** A sampled context as one text, for records; `parseTrace` reads it. */
export const traceText = ({ traceId, spanId, state }: TraceContext): string =>
  `00-${traceId}-${spanId}-01${state === undefined ? "" : ` ${state}`}`;

/** Undefined where there is none, or it is none. */
export function parseTrace(text: string | undefined): TraceContext | undefined {
  const space = text?.indexOf(" ") ?? -1;
  return space < 0
    ? findTrace({ traceparent: text })
    : findTrace({ traceparent: text?.slice(0, space), tracestate: text?.slice(space + 1) });
}
