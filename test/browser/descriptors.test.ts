import { execFileSync } from "node:child_process";
import { closeSync, openSync, readdirSync } from "node:fs";
import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { startWalled } from "../../src/browser/isolation/syscall-filter.js";

/** What `work` gives where this process has no descriptor left. */
function withoutDescriptors<Given>(work: () => Given): Given {
  const open = readdirSync("/proc/self/fd").length;
  execFileSync("prlimit", ["--pid", String(process.pid), `--nofile=${open + 40}:`]);
  const taken: number[] = [];
  try {
    for (;;) taken.push(openSync("/dev/null", "r"));
  } catch {
    return work();
  } finally {
    for (const one of taken) closeSync(one);
    execFileSync("prlimit", ["--pid", String(process.pid), "--nofile=4096:"]);
  }
}

test("where no descriptor is left a start fails with a clear message, and no unhandled error comes later", async () => {
  const unheard: unknown[] = [];
  const onUncaught = (error: unknown): void => void unheard.push(error);
  process.prependListener("uncaughtException", onUncaught);
  const start = (): Promise<unknown> =>
    startWalled({}, ["/bin/true"], { stdio: ["ignore", "ignore", "pipe", "pipe", "pipe"] }).catch(
      (error: unknown) => error,
    );
  expect(await withoutDescriptors(start)).toMatchObject({
    message: "no descriptor is left to start a process with (EMFILE)",
  });
  await setImmediate();
  process.off("uncaughtException", onUncaught);
  expect(unheard).toEqual([]);
});
