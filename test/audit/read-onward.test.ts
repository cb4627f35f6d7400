import { afterAll, beforeAll, expect, test } from "vitest";
import { positionBefore } from "../../src/audit/entry.js";
import { entriesAfter } from "../../src/audit/read-onward.js";
import { makeSeal } from "../../src/audit/seal.js";
import { type AuditBed, openAuditBed } from "../support/audit/audit-bed.js";
import { startRedis, type TestRedis } from "../support/store/redis.js";
import { openStoreBed, type StoreBed } from "../support/store/store-bed.js";

let server: TestRedis;
let stores: StoreBed;
beforeAll(async () => {
  server = await startRedis();
  stores = await openStoreBed(server, { project: "onward" });
});
afterAll(async () => {
  await stores.close();
  await server.stop();
});

async function withLog(
  work: (bed: AuditBed) => Promise<void>,
  options: Parameters<typeof openAuditBed>[1] = {},
): Promise<void> {
  await stores.redis.flushall();
  const bed = await openAuditBed(stores, options);
  await work(bed).finally(() => bed.close());
}
const paths = (count: number): string[] => Array.from({ length: count }, (_, index) => `/${index}`);
type Parts = Parameters<typeof entriesAfter>[0];
const partsOf = ({ audit, files }: AuditBed, over: Partial<Parts["store"]> = {}): Parts => ({
  files,
  store: {
    manifest: () => audit.manifest(),
    segments: (...asked) => audit.segments(...asked),
    oldest: (...asked) => audit.oldest(...asked),
    ...over,
  },
});

/** All paths, a few entries at a time. */
async function readAll(parts: Parts): Promise<readonly string[]> {
  const found: string[] = [];
  let after = positionBefore(1);
  for (let isOver = false; !isOver;) {
    const entries = await entriesAfter(parts, after, 4);
    expect(entries.length).toBeLessThanOrEqual(4);
    found.push(...entries.map(({ path }) => path));
    after = entries.at(-1)?.position ?? after;
    isOver = entries.length === 0;
  }
  return found;
}

test("each entry comes once and in order, from segments and from the newest part", () =>
  withLog(
    async (bed) => {
      await bed.appendPaths(paths(25));
      await bed.seal();
      await bed.appendPaths(paths(35).slice(25));
      expect((await bed.audit.manifest()).last).toBe(3);
      expect(await readAll(partsOf(bed))).toEqual(paths(35));
    },
    { segmentEntries: 10 },
  ));

test("what is sealed between two looks is not passed over", () =>
  withLog(
    async (bed) => {
      await bed.appendPaths(paths(20));
      let isSealed = false;
      const parts = partsOf(bed, {
        // The manifest was read before; the entries have left the newest part since.
        async oldest(...asked) {
          if (!isSealed) await makeSeal({ ...bed.sealing, segmentEntries: 10 })();
          isSealed = true;
          return bed.audit.oldest(...asked);
        },
      });
      expect(await readAll(parts)).toEqual(paths(20));
    },
    { segmentEntries: 10 },
  ));

test("what retention takes between two looks is passed over, and nothing else", () =>
  withLog(
    async (bed) => {
      await bed.appendPaths(paths(20));
      await bed.seal();
      let isDropped = false;
      const parts = partsOf(bed, {
        async segments(...asked) {
          const segments = await bed.audit.segments(...asked);
          const [oldest] = await bed.audit.segments(1, 1);
          if (!isDropped && oldest) await bed.audit.drop(oldest);
          isDropped = true;
          return segments;
        },
      });
      expect(await readAll(parts)).toEqual(paths(20).slice(10));
    },
    { segmentEntries: 10 },
  ));
