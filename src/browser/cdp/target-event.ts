import { isRecord } from "../../base/is-record.js";
import { bytesOf, type Frame, frameHeadOf, frameTailOf, wholeOf } from "./frame.js";

/** The part of a `Target.targetCreated` that is read. */
export interface TargetInfo {
  readonly targetId: string;
  readonly type: string;
  readonly title: string;
  readonly url: string;
  readonly subtype?: string;
  readonly browserContextId?: string;
  /** The page that has opened it, and whether it has a hold on that. */
  readonly openerId?: string;
  readonly canAccessOpener?: boolean;
}

/**
 * What Chromium says of a target; undefined where it has another form than in the versions that are known.
 */
export const targetInfoOf = (fields: unknown): TargetInfo | undefined =>
  isRecord(fields) && isTargetInfo(fields) ? fields : undefined;

type ProtocolFields = Readonly<Record<string, unknown>>;

const isTargetInfo = (fields: ProtocolFields): fields is ProtocolFields & TargetInfo =>
  typeof fields["targetId"] === "string" &&
  typeof fields["type"] === "string" &&
  typeof fields["title"] === "string" &&
  typeof fields["url"] === "string" &&
  isTextOrNothing(fields["subtype"]) &&
  isTextOrNothing(fields["browserContextId"]) &&
  isTextOrNothing(fields["openerId"]);

const isTextOrNothing = (value: unknown): boolean => value === undefined || typeof value === "string";

/** Longer events are not parsed: they come as often as a page changes its title. */
export const longestEventBytes = 16 * 1024;
const headBytes = 256;
const targetHead = /"targetInfo":\{"targetId":"([^"]+)","type":"([^"]+)"/;
/**
 * Quotation marks inside a text are escaped, so the first match is the target's own URL, whatever its title
 * says.
 */
const urlKey = Buffer.from(',"url":"');
const urlHeadBytes = 4096;
/** These fields come after the texts that a page writes. */
const targetTail =
  /"browserContextId":"([0-9A-Za-z-]+)"(?:,"subtype":"([a-z_]+)")?\}\}(?:\}|,"sessionId":"[^"]+"\})?$/;
const openerTail = /,"openerId":"([0-9A-F]+)","canAccessOpener":(true|false),/;
const targetTailBytes = 512;

/**
 * What an event says of its target. Of an event that is too long to parse it finds what tells whose page it
 * is (in the order that Chromium 156 writes).
 */
export function findTarget(frame: Frame): TargetInfo | undefined {
  if (bytesOf(frame) <= longestEventBytes)
    return targetInfoOf(paramsOf(JSON.parse(wholeOf(frame).toString()))["targetInfo"]);
  const [, targetId, type] = targetHead.exec(frameHeadOf(frame).toString("latin1", 0, headBytes)) ?? [];
  if (targetId === undefined || type === undefined) return undefined;
  return { targetId, type, title: "", url: urlHead(wholeOf(frame)), ...contextOf(frame) };
}

/** The parameters of a parsed event; empty where it has none. */
export const paramsOf = (event: unknown): ProtocolFields =>
  isRecord(event) && isRecord(event["params"]) ? event["params"] : {};

function contextOf(
  frame: Frame,
): Pick<TargetInfo, "browserContextId" | "subtype" | "openerId" | "canAccessOpener"> {
  const bytes = frameTailOf(frame);
  const tail = bytes.toString("latin1", Math.max(0, bytes.length - targetTailBytes));
  const [, browserContextId, subtype] = targetTail.exec(tail) ?? [];
  const [, openerId, access] = openerTail.exec(tail) ?? [];
  return {
    ...(openerId !== undefined && { openerId, canAccessOpener: access === "true" }),
    ...(browserContextId !== undefined && { browserContextId }),
    ...(subtype !== undefined && { subtype }),
  };
}

/** An address that is not found counts as one of the browser's own pages. */
function urlHead(frame: Buffer): string {
  const at = frame.indexOf(urlKey);
  if (at < 0) return "chrome://unknown/";
  const from = at + urlKey.length;
  return frame.toString("utf8", from, from + urlHeadBytes).split('"', 1)[0] ?? "";
}
