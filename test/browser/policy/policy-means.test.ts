import { execFile } from "node:child_process";
import { chmodSync, chownSync, copyFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { takeCensus } from "../../support/browser/chromium-census.js";
import { newScratchDirectory } from "../../support/browser/chromium-host.js";
import { compileSources } from "../../support/compiled.js";

const isRoot = process.getuid?.() === 0;
/** Nobody else's, so that what it leaves can be told apart. */
const uid = isRoot ? 64_322 : (process.getuid?.() ?? 0);

let compiled: Awaited<ReturnType<typeof compileSources>>;
beforeAll(async () => {
  compiled = await compileSources();
  chmodSync(compiled.directory, 0o755);
  copyFileSync(
    join(import.meta.dirname, "../../support/browser/policy-daemon.mjs"),
    join(compiled.directory, "policy-daemon.mjs"),
  );
});
afterAll(() => compiled.remove());

const asUser = isRoot ? ["setpriv", "--reuid", `${uid}`, "--regid", `${uid}`, "--clear-groups", "--"] : [];

async function said(prefix: readonly string[], owner: number): Promise<unknown[]> {
  const scratch = newScratchDirectory();
  if (isRoot) chownSync(scratch, owner, owner);
  const [program = "", ...args] = [
    ...prefix,
    process.execPath,
    join(compiled.directory, "policy-daemon.mjs"),
    compiled.directory,
    scratch,
  ];
  const { stdout } = await promisify(execFile)(program, args, { cwd: "/", timeout: 60_000 });
  expect((await takeCensus(scratch, new Set([owner]))).directories).toEqual([]);
  return stdout
    .trim()
    .split("\n")
    .map((line) => (line.startsWith("[") ? (JSON.parse(line) as unknown) : line));
}

/** Whether scripts run in each: not in the first. */
const three = ["", "ran", "ran"];
const both = [three, three, "ended"];

test.runIf(isRoot)(
  "in private roots that root mounts: three browsers at once, each with its own policy",
  async () => {
    expect(await said([], 0)).toEqual(["root-mounts", ...both]);
  },
  60_000,
);

test("without root, in private roots of user namespaces: the same", async () => {
  expect(await said(asUser, uid)).toEqual(["user-namespace", ...both]);
}, 60_000);
