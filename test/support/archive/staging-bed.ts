import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import type { Staging } from "../../../src/archive/archives.js";
import { openStaging } from "../../../src/archive/staging.js";

/** A staging of this test file's own. */
export async function stagingBed(): Promise<{
  readonly staging: Staging;
  files(): Promise<readonly string[]>;
}> {
  const root = await mkdtemp(join(tmpdir(), "remuda-staging-"));
  afterAll(() => rm(root, { recursive: true, force: true }));
  const directory = join(root, "staging");
  return { staging: await openStaging(directory), files: () => readdir(directory) };
}
