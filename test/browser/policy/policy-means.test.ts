import { execFile } from "node:child_process";
import { chownSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { takeCensus } from "../../support/browser/chromium-census.js";
import { newScratchDirectory } from "../../support/killed-runs.js";
import { compiled } from "../../support/compiled.js";

const isRoot = process.getuid?.() === 0;
/** Nobody else's, so that what it leaves can be told apart. */
const uid = isRoot ? 64_322 : (process.getuid?.() ?? 0);

const asUser = isRoot ? ["setpriv", "--reuid", `${uid}`, "--regid", `${uid}`, "--clear-groups", "--"] : [];

async function said(prefix: readonly string[], owner: number): Promise<unknown[]> {
  const scratch = newScratchDirectory();
  if (isRoot) chownSync(scratch, owner, owner);
  const [program = "", ...args] = [
    ...prefix,
    process.execPath,
    join(compiled, "test/support/browser/policy-daemon.mjs"),
    compiled,
    scratch,
  ];
  const { stdout } = await promisify(execFile)(program, args, { cwd: "/", timeout: 110_000 });
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
);

test("without root, in private roots of user namespaces: the same", async () => {
  expect(await said(asUser, uid)).toEqual(["user-namespace", ...both]);
});
