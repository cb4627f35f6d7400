import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { growthFlag, heldBuffersFlag } from "../../src/daemon/heap-limits.js";

test("V8 is given flags that it knows, and told to count held buffers where it does not do so by itself", async () => {
  const versions = [
    "11.3.244.8-node.38",
    "12.9.202.28",
    "13.6.233.17-node.53",
    "14.6.202.34-node.34",
    "14.8.1",
  ];
  const flag = "--external-memory-accounted-in-global-limit";
  expect(versions.map(heldBuffersFlag)).toEqual([undefined, undefined, flag, flag, undefined]);
  // What V8 does not know it complains of, at each start of a daemon.
  const { stdout } = await promisify(execFile)(process.execPath, ["--v8-options"]);
  expect(stdout).toContain(`  ${growthFlag.split("=", 1)[0]} `);
  expect(heldBuffersFlag(process.versions.v8)).toBe(stdout.includes(`  ${flag} `) ? flag : undefined);
});
