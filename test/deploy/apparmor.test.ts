import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

const profile = join(import.meta.dirname, "../../k8s/apparmor-remuda");

interface Ended {
  readonly code: number;
  readonly output: string;
}
/** `-Q` loads nothing and `-K` keeps nothing, so that it needs no kernel with AppArmor. */
const parse = (text: string): Promise<Ended> =>
  new Promise((resolve) => {
    const child = execFile("/usr/sbin/apparmor_parser", ["-Q", "-K"], (error, stdout, stderr) =>
      resolve({ code: typeof error?.code === "number" ? error.code : 0, output: stdout + stderr }),
    );
    child.stdin?.on("error", () => {}).end(text);
  });
/** Undefined where there is none, as on Fedora. */
const version = await new Promise<string | undefined>((resolve, reject) => {
  execFile("/usr/sbin/apparmor_parser", ["--version"], (error, stdout) => {
    if (error?.code === "ENOENT") return resolve(undefined);
    return error ? reject(error) : resolve(/version (\d+)/.exec(stdout)?.[1]);
  });
});

/**
 * Before 4.0 the parser knows neither that list of features nor user namespaces, which are then not
 * restricted.
 */
const known = (text: string, major: number): string =>
  major >= 4 ? text : text.replace("abi/4.0", "abi/3.0").replace(/^ *userns,\n/m, "");

test("the profile allows what bubblewrap and Chromium's sandbox need", async () => {
  const text = await readFile(profile, "utf8");
  for (const rule of ["userns", "mount", "umount", "pivot_root", "capability", "file", "network"])
    expect(text).toMatch(new RegExp(`^ +${rule},$`, "m"));
});

const describeParser = (tests: () => void): void =>
  version === undefined ? undefined : void describe("the installed apparmor_parser", tests);

describeParser(() => {
  test("takes the profile", async () => {
    const text = known(await readFile(profile, "utf8"), Number(version));
    expect(await parse(text)).toMatchObject({ code: 0 });
  });
  test("takes none with a rule that there is not", async () => {
    const text = known(await readFile(profile, "utf8"), Number(version));
    expect((await parse(text.replace("  mount,", "  mounting,"))).code).not.toBe(0);
  });
});
