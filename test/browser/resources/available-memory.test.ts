import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { totalmem } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { makeReadMemory, readGroupMemory } from "../../../src/browser/resources/available-memory.js";
import { newDirectory } from "../../support/killed-runs.js";

const gibi = 2 ** 30;
const mebi = 2 ** 20;

/** Files as the kernel shows them of a cgroup below two others, from the innermost outwards. */
function groupOf(...files: readonly Readonly<Record<string, string>>[]): string {
  const folder = newDirectory("memory");
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const own = join(folder, "a", "b");
  mkdirSync(own, { recursive: true });
  for (const [at, texts] of files.entries())
    for (const [name, text] of Object.entries(texts))
      writeFileSync(join(own, ...Array.from({ length: at }, () => ".."), name), `${text}\n`);
  return own;
}

test("what is left of a limit does not count what was read of files and not again", async () => {
  const second = groupOf({
    "memory.max": `${gibi}`,
    "memory.current": `${700 * mebi}`,
    "memory.stat": `anon 1\ninactive_file ${200 * mebi}\nactive_file 5`,
  });
  expect(await readGroupMemory({ version: 2, own: second })).toEqual([
    { bytes: gibi, leftBytes: gibi - 500 * mebi },
  ]);
  const first = groupOf({
    "memory.limit_in_bytes": `${gibi}`,
    "memory.usage_in_bytes": `${700 * mebi}`,
    "memory.stat": `inactive_file 1\ntotal_inactive_file ${100 * mebi}`,
  });
  expect(await readGroupMemory({ version: 1, own: first })).toEqual([
    { bytes: gibi, leftBytes: gibi - 600 * mebi },
  ]);
});

test("the limits of the cgroups around it count too, and one that is none does not", async () => {
  const stat = { "memory.stat": "inactive_file 0\ntotal_inactive_file 0" };
  const nested = groupOf(
    { ...stat, "memory.max": "max", "memory.current": "5" },
    { ...stat, "memory.max": `${gibi}`, "memory.current": `${2 * gibi}` },
  );
  expect(await readGroupMemory({ version: 2, own: nested })).toEqual([{ bytes: gibi, leftBytes: 0 }]);
  const highest = "9223372036854771712";
  const unlimited = groupOf({ ...stat, "memory.limit_in_bytes": highest, "memory.usage_in_bytes": "5" });
  expect(await readGroupMemory({ version: 1, own: unlimited })).toEqual([]);
  // The cgroup at the root of a machine has no such files.
  expect(await readGroupMemory({ version: 2, own: groupOf({ "cgroup.procs": "1" }) })).toEqual([]);
});

test("this machine tells how much it has, and that some of it is left", async () => {
  const { bytes, leftBytes } = await (await makeReadMemory())();
  expect(bytes).toBeGreaterThan(gibi);
  expect(bytes).toBeLessThanOrEqual(totalmem());
  expect(leftBytes).toBeGreaterThan(0);
  expect(leftBytes).toBeLessThan(bytes);
});
