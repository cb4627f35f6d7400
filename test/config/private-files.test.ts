import { chmod, chown, mkdir, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { closeToOthers } from "../../src/config/private-files.js";
import { compiled } from "../support/compiled.js";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "remuda-test-private-"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const modeOf = async (name = "."): Promise<string> =>
  ((await stat(join(directory, name))).mode & 0o777).toString(8);
async function keep(name: string, mode: number): Promise<void> {
  await writeFile(join(directory, name), "secret");
  await chmod(join(directory, name), mode);
}

test("what others could read is closed to them, and reported", async () => {
  await chmod(directory, 0o755);
  await keep("api-key", 0o644);
  await keep("cluster-secret", 0o640);
  await keep("encryption-key", 0o600);
  for (const name of ["redis", "archives"]) {
    await mkdir(join(directory, name));
    await chmod(join(directory, name), 0o775);
  }
  expect(await closeToOthers(directory)).toEqual(
    ["", "api-key", "cluster-secret", "redis", "archives"].map((name) => join(directory, name)),
  );
  expect(
    await Promise.all([".", "api-key", "cluster-secret", "encryption-key", "redis", "archives"].map(modeOf)),
  ).toEqual(["700", "600", "600", "600", "700", "700"]);
  expect(await closeToOthers(directory)).toEqual([]);
});

test("a directory that is not there yet, and one without keys, are no fault", async () => {
  expect(await closeToOthers(join(directory, "absent"))).toEqual([]);
  expect(await closeToOthers(directory)).toEqual([]);
});

/** The same as another user, who owns nothing here. */
async function asStranger(path: string): Promise<{ status: number | null; text: string }> {
  const module = pathToFileURL(join(compiled, "src/config/private-files.js")).href;
  const code = `const { closeToOthers } = await import("${module}"); console.log(JSON.stringify(await closeToOthers(${JSON.stringify(path)})));`;
  const { status, stdout, stderr } = spawnSync(
    "setpriv",
    [
      "--reuid",
      "64999",
      "--regid",
      "64999",
      "--clear-groups",
      process.execPath,
      "--input-type=module",
      "-e",
      code,
    ],
    { encoding: "utf8" },
  );
  return { status, text: stdout + stderr };
}

test.runIf(process.getuid?.() === 0)(
  "what this user may not close is refused by its path; a directory of a group may be another's",
  async () => {
    await chmod(directory, 0o755);
    expect(await asStranger(directory)).toMatchObject({
      status: 1,
      text: expect.stringContaining(`${directory} may be entered or read by other users (mode 755)`),
    });
    // Kubernetes gives a volume like this with an fsGroup: it is root's, and open to the group.
    await chown(directory, 0, 64_999);
    await chmod(directory, 0o770);
    expect(await asStranger(directory)).toEqual({ status: 0, text: "[]\n" });
    await keep("encryption-key", 0o640);
    await chown(join(directory, "encryption-key"), 0, 64_999);
    expect(await asStranger(directory)).toMatchObject({
      status: 1,
      text: expect.stringContaining("encryption-key may be entered or read"),
    });
  },
);
