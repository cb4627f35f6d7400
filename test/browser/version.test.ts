import { chmod, mkdtemp, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makeFindMajorVersion } from "../../src/browser/executable.js";

test("an executable is asked for its version once, and again when its file has changed", async () => {
  const directory = await mkdtemp(join(tmpdir(), "remuda-test-version-"));
  const [executable, asked] = [join(directory, "chromium"), join(directory, "asked")];
  const install = async (version: string, second: number): Promise<void> => {
    await writeFile(executable, `#!/bin/sh\necho "$1" >> '${asked}'\necho "Chromium ${version}.0.1"\n`);
    await chmod(executable, 0o755);
    await utimes(executable, second, second);
  };
  const find = makeFindMajorVersion();
  await install("156", 1_000);
  expect(await Promise.all([find(executable), find(executable)])).toEqual(["156", "156"]);
  expect(await find(executable)).toBe("156");
  await install("157", 2_000);
  expect(await find(executable)).toBe("157");
  expect(await readFile(asked, "utf8")).toBe("--version\n--version\n");
  await rm(directory, { recursive: true });
});

test("an executable that could not be run, as for want of memory or descriptors, is asked again", async () => {
  const directory = await mkdtemp(join(tmpdir(), "remuda-test-version-"));
  const [executable, asked] = [join(directory, "chromium"), join(directory, "asked")];
  const once = `[ -e '${asked}' ] || { touch '${asked}'; kill -9 $$; }`;
  await writeFile(executable, `#!/bin/sh\n${once}\necho "Chromium 156.0.1"\n`);
  await chmod(executable, 0o755);
  const find = makeFindMajorVersion();
  expect(await Promise.all([find(executable), find(executable)])).toEqual([undefined, undefined]);
  expect(await find(executable)).toBe("156");
  await rm(directory, { recursive: true });
});
