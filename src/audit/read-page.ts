import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Clock, Millis } from "../base/clock.js";
import { type Done, done, type Refusal, refusal } from "../base/errors.js";
import { type Entry, findPosition, lineOf, type Position } from "./entry.js";
import type { AuditFilter } from "./filter.js";
import { type LogParts, readLog } from "./read-log.js";
import { yieldTurn } from "../base/yield-turn.js";

const pack = promisify(gzip);

/** One page of entries, newest first; `next` is there while there are more. */
interface AuditPage {
  readonly entries: readonly Entry[];
  readonly next?: string;
}
interface AuditChunk {
  readonly bytes: Buffer;
  readonly count: number;
  readonly next?: string;
}
interface PageRequest {
  readonly filter: AuditFilter;
  readonly limit: number;
  /** What the page before gave as `next`. */
  readonly token?: string;
  /** Aborts when nobody waits for the page any more: a search may read much. */
  readonly gone?: AbortSignal;
}
interface ChunkRequest extends PageRequest {
  readonly isPacked: boolean;
}

/** Reads the log. */
export interface AuditReader {
  page(request: PageRequest): Promise<Done<AuditPage> | Refusal>;
  /** The same request with a token gives the same bytes, whatever comes into the log. */
  chunk(request: ChunkRequest): Promise<Done<AuditChunk> | Refusal>;
}

/** A page that has found something is answered after so long, since its caller waits for a minute at most. */
const searchMs: Millis = 10_000;
/** Each may hold 50,000 entries in memory. */
const chunksAtOnce = 2;
const linesAtOnce = 1000;

export function makeAuditReader(parts: LogParts & { readonly clock: Clock }): AuditReader {
  let chunks = 0;
  const chunk = async (request: ChunkRequest): Promise<Done<AuditChunk> | Refusal> => {
    const got = await take(parts, { ...request, purpose: "chunk", limitMs: Infinity });
    if (got.kind === "refused") return got;
    const { entries, next } = got.value;
    const text = Buffer.from(await textOf(entries));
    const bytes = request.isPacked ? await pack(text) : text;
    return done({ bytes, count: entries.length, ...(next !== undefined && { next }) });
  };
  return {
    page: (request) => take(parts, { ...request, purpose: "list", limitMs: searchMs }),
    async chunk(request) {
      if (chunks >= chunksAtOnce)
        return refusal("too_many_requests", { message: "Other exports are under way" });
      chunks += 1;
      try {
        return await chunk(request);
      } finally {
        chunks -= 1;
      }
    },
  };
}

interface Take extends PageRequest {
  readonly purpose: "list" | "chunk";
  readonly limitMs: Millis;
}

/** Looks for one entry more than is shown, which tells whether there are more. */
async function take(
  parts: LogParts & { readonly clock: Clock },
  { filter, limit, token, purpose, limitMs, gone }: Take,
): Promise<Done<AuditPage> | Refusal> {
  const asked = `${purpose} ${digestOf(filter)}`;
  const before = token === undefined ? undefined : positionIn(token, asked);
  if (token !== undefined && before === undefined) return refusal("bad_request", { message: foreignToken });
  const began = parts.clock.monotonic();
  const found: Entry[] = [];
  let isOver = true;
  for await (const entries of readLog(parts, filter, before)) {
    for (const entry of entries) found.push(entry);
    isOver = !(found.length > limit || (found.length > 0 && parts.clock.monotonic() - began > limitMs));
    if (!isOver || gone?.aborted === true) break;
  }
  const entries = found.slice(0, limit);
  const last = entries.at(-1);
  return done({ entries, ...(!isOver && last && { next: tokenOf(last.position, asked) }) });
}

async function textOf(entries: readonly Entry[]): Promise<string> {
  let text = "";
  for (const [index, entry] of entries.entries()) {
    text += lineOf(entry);
    if (index % linesAtOnce === linesAtOnce - 1) await yieldTurn();
  }
  return text;
}

const foreignToken =
  "The token is not one of these filters and this range: take the one that the page before gave";

const digestOf = (filter: AuditFilter): string =>
  createHash("sha256")
    .update(JSON.stringify(Object.entries(filter).sort()))
    .digest("base64url")
    .slice(0, 12);

const tokenOf = (position: Position, asked: string): string =>
  Buffer.from(`1 ${asked} ${position}`).toString("base64url");

function positionIn(token: string, asked: string): Position | undefined {
  const text = Buffer.from(token, "base64url").toString("latin1");
  const start = `1 ${asked} `;
  return text.startsWith(start) ? findPosition(text.slice(start.length)) : undefined;
}
