import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Redis } from "ioredis";
import type { Entry, NewEntry } from "../../../src/audit/entry.js";
import type { AuditFilter } from "../../../src/audit/filter.js";
import { makeAuditReader } from "../../../src/audit/read-page.js";
import { makeSeal } from "../../../src/audit/seal.js";
import type { Segment } from "../../../src/audit/segment.js";
import { SegmentFiles } from "../../../src/audit/segment-files.js";
import { DirectoryArchives } from "../../../src/archive/directory-archives.js";
import { openStaging } from "../../../src/archive/staging.js";
import { systemClock } from "../../../src/base/clock.js";
import { RedisAuditStore } from "../../../src/store/organization/audit-store.js";
import { silentLog } from "../browser/chromium-host.js";
import type { StoreBed } from "../store/store-bed.js";

export const newEntry = (over: Partial<NewEntry> = {}): NewEntry => ({
  authStrategy: "api_key",
  userId: "root",
  email: "root@remuda.invalid",
  status: 200,
  method: "GET",
  path: "/browsers",
  route: "/browsers",
  domain: "127.0.0.1",
  clientIp: "127.0.0.1",
  userAgent: "test",
  receivedAt: 0,
  durationMs: 3,
  ...over,
});

const hourMs = 3_600_000;
/** A range that holds whatever a test records. */
export const always = (): AuditFilter => ({ start: Date.now() - 24 * hourMs, end: Date.now() + 24 * hourMs });

interface AuditBedOptions {
  readonly mostBytes?: number;
  readonly segmentEntries?: number;
  readonly hotMs?: number;
  readonly sealBytes?: number;
  readonly keepMs?: number;
}

interface Old {
  readonly path: string;
  readonly recordedAt: number;
  readonly at: number;
  readonly index: number;
}

/** The audit log over a test's Redis and a directory of its own. */
export async function openAuditBed({ store, redis }: StoreBed, options: AuditBedOptions = {}) {
  const directory = await mkdtemp(join(tmpdir(), "remuda-audit-"));
  const archives = new DirectoryArchives(join(directory, "archives"), systemClock);
  const staging = await openStaging(join(directory, "staging"));
  const audit = new RedisAuditStore(store, options.mostBytes ?? 2 ** 30);
  /** Files that another daemon would read, with nothing in memory. */
  const newFiles = () => new SegmentFiles({ archives, staging, clock: systemClock });
  const files = newFiles();
  const reader = makeAuditReader({ store: audit, files, clock: systemClock });
  const sealing = {
    store: audit,
    files,
    hotMs: options.hotMs ?? hourMs,
    // All that there is, unless a test says otherwise.
    sealBytes: options.sealBytes ?? 0,
    segmentEntries: options.segmentEntries ?? 1000,
    keepMs: options.keepMs ?? 24 * hourMs,
    log: silentLog,
  };
  const addOld = async ({ path, recordedAt, at, index }: Old): Promise<void> => {
    const row = JSON.stringify(["api_key", "root", "", 200, "GET", path, path, "", 1, "", ""]);
    const id = `${recordedAt}-${index + 1}`;
    await store.redis.xadd("remuda:{audit}:auditStream", id, "at", at, "entry", row);
  };
  let batches = 0;
  const append = (entries: readonly NewEntry[], number = (batches += 1)) =>
    audit.append({ writer: "writer", number, entries, sentAt: 5 });
  const page = async (filter: AuditFilter, limit = 100, token?: string) => {
    const got = await reader.page({ filter, limit, ...(token !== undefined && { token }) });
    if (got.kind === "refused") throw new Error(got.message);
    return got.value;
  };
  return {
    audit,
    reader,
    files,
    newFiles,
    archives,
    directory,
    redis: redis as Redis,
    sealing,
    seal: makeSeal(sealing),
    append,
    /** Entries that are told apart by their paths. */
    appendPaths: async (paths: readonly string[]) => append(paths.map((path) => newEntry({ path }))),
    page,
    /** All pages of a list, each asked for with the token of the one before. */
    async all(filter: AuditFilter = always(), limit = 7): Promise<readonly Entry[]> {
      const entries: Entry[] = [];
      for (let token: string | undefined, isOver = false; !isOver;) {
        const got = await page(filter, limit, token);
        entries.push(...got.entries);
        token = got.next;
        isOver = token === undefined;
      }
      return entries;
    },
    /** A reader with nothing in memory, and the segments whose entries it has read. */
    counting() {
      const read: string[] = [];
      const fresh = newFiles();
      const counted = {
        grams: fresh.grams.bind(fresh),
        rows: (segment: Pick<Segment, "rows" | "count">) => {
          read.push(segment.rows);
          return fresh.rows(segment);
        },
      };
      return { read, reader: makeAuditReader({ store: audit, files: counted, clock: systemClock }) };
    },
    /** Entries that were recorded so long ago; to be made before any others. */
    async oldEntries(paths: readonly string[], ageMs: number): Promise<void> {
      const at = Date.now() - ageMs;
      for (const [index, path] of paths.entries()) await addOld({ path, recordedAt: at, at, index });
    },
    /** One that was recorded at one instant and received at another. */
    oldEntry: (entry: { readonly path: string; readonly recordedAt: number; readonly at: number }) =>
      addOld({ ...entry, index: 0 }),
    /** What lies in the archives. */
    archived: async () =>
      (await readdir(join(directory, "archives"), { recursive: true })).filter((name) =>
        /[0-9a-f]{64}$/.test(name),
      ),
    close: () => rm(directory, { recursive: true, force: true }),
  };
}
export type AuditBed = Awaited<ReturnType<typeof openAuditBed>>;
