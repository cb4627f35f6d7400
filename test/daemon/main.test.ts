import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { helpText } from "../../src/config/table.js";
import { growthFlag } from "../../src/daemon/heap-limits.js";
import { compiled } from "../support/compiled.js";

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "remuda-test-main-"));
});
afterAll(() => rm(directory, { recursive: true }));

async function main(
  args: readonly string[],
  file = "{}",
  nodeArgs: readonly string[] = [],
): Promise<{ code: number; stdout: string; stderr: string }> {
  const config = join(directory, "config.json");
  await writeFile(config, file);
  const env = {
    PATH: "/usr/bin:/bin",
    REMUDA_CONFIG: config,
    REMUDA_DATA_DIR: join(directory, "data"),
    REMUDA_PORT: "0",
  };
  return await new Promise((resolve) => {
    execFile(
      process.execPath,
      [...nodeArgs, join(compiled, "src/main.js"), ...args],
      { env, timeout: 100_000 },
      (error, stdout, stderr) => resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}

test("--help prints every setting and starts nothing", async () => {
  expect(await main(["--help"])).toEqual({ code: 0, stdout: `${helpText()}\n`, stderr: "" });
});

test("an argument that is not understood is refused", async () => {
  expect(await main(["--prot=1"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--prot=1 is not understood"),
  });
});

test("a configuration with faults is refused with all of them, and the file's name", async () => {
  const { code, stderr } = await main(
    [],
    '{"server": {"prot": 1}, "fill": {"backoff_max_ms": -1}, "pools": [{"size": 1}]}',
  );
  expect(code).toBe(2);
  expect(stderr.trim().split("\n")).toEqual([
    `The configuration is refused (${join(directory, "config.json")}):`,
    "  server.prot: there is no such setting",
    "  fill.backoff_max_ms: has to be a whole number from 1 to 86,400,000 (ms), and is -1",
    "  pools[0].name: has to be given, or the pool would be created at every start",
  ]);
});

/** A module that tells on stderr what V8 is told. */
const teller = `
  import v8 from "node:v8";
  import { syncBuiltinESMExports } from "node:module";
  const { setFlagsFromString } = v8;
  v8.setFlagsFromString = (flag) => {
    setFlagsFromString(flag);
    process.stderr.write(flag + "\\n");
  };
  syncBuiltinESMExports();`;

test("a daemon that begins tells V8 how far its heap may grow", async () => {
  // It ends by itself: a file cannot be the data directory.
  await writeFile(join(directory, "data"), "");
  const hook = `data:text/javascript,${encodeURIComponent(teller)}`;
  const { stdout, stderr } = await main([], "{}", ["--import", hook]);
  expect(stdout).toContain("cannot be the data directory");
  expect(stderr.split("\n")).toContain(growthFlag);
});
