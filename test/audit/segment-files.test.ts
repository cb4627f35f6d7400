import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DirectoryArchives } from "../../src/archive/directory-archives.js";
import { openStaging } from "../../src/archive/staging.js";
import { positionAt } from "../../src/audit/entry.js";
import { SegmentFiles } from "../../src/audit/segment-files.js";
import { systemClock } from "../../src/base/clock.js";
import type { Digest } from "../../src/base/ids.js";
import { newEntry } from "../support/audit/audit-bed.js";

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "remuda-segments-"));
});
afterAll(() => rm(directory, { recursive: true }));

test("however many search at once, two segments are unpacked at a time, and each once for all", async () => {
  const archives = new DirectoryArchives(join(directory, "archives"), systemClock);
  const staging = await openStaging(join(directory, "staging"));
  const written = new SegmentFiles({ archives, staging });
  const put = (path: string) =>
    written.put([{ ...newEntry({ path }), position: positionAt(1), at: 1 }]).then(({ rows }) => rows);
  const paths = ["/0", "/1", "/2", "/3", "/4"];
  const digests = await Promise.all(paths.map(put));

  const opened: Digest[] = [];
  let release = (): void => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  const open = async (digest: Digest) => {
    opened.push(digest);
    await released;
    return archives.open(digest);
  };
  const files = new SegmentFiles({ archives: { put: archives.put.bind(archives), open }, staging });
  const reading = [...digests, ...digests].map((rows) => files.rows({ rows }));
  await expect.poll(() => opened.length).toBe(2);
  release();
  const read = await Promise.all(reading);
  expect(read.map((rows) => rows.entry(0).path)).toEqual([...paths, ...paths]);
  expect(opened.toSorted()).toEqual(digests.toSorted());
});
