import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");
interface Parts {
  "repeat.mjs": {
    repeatTests(root: string, repeat: { times: number; filters: readonly string[] }): Promise<number>;
  };
  "checks.mjs": {
    countTests(report: object, code: number): { passed: number; failed: number };
    trackedSources(root: string): readonly string[];
    checkTypes(step: { root: string; isParallel: boolean }): Promise<{ passed: number; failed: number }>;
  };
}
const part = <Name extends keyof Parts>(name: Name): Promise<Parts[Name]> =>
  import(join(root, "scripts/bootstrap", name));
const { repeatTests } = await part("repeat.mjs");
const { checkTypes, countTests, trackedSources } = await part("checks.mjs");

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "remuda-test-checks-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const write = (path: string, content: string | object): void => {
  mkdirSync(join(directory, path, ".."), { recursive: true });
  writeFileSync(join(directory, path), typeof content === "string" ? content : JSON.stringify(content));
};
const git = (...args: string[]): void => void execFileSync("git", args, { cwd: directory });

describe("a repeated check", () => {
  test("of a file that is not there says so, and runs nothing", async () => {
    const filters = ["test/scripts/checks", "missing-file", "-t", "no name"];
    await expect(repeatTests(root, { times: 3, filters })).rejects.toThrow(
      "No test file has missing-file in its path.",
    );
  });
  test("runs the file so many times, and fails where one run does", { timeout: 120_000 }, async () => {
    symlinkSync(join(root, "node_modules"), join(directory, "node_modules"));
    const counter = join(directory, "runs");
    write(
      "test/tiny.test.ts",
      `import { appendFileSync, readFileSync } from "node:fs";
      import { expect, test } from "vitest";
      test("its third run fails", () => {
        appendFileSync(${JSON.stringify(counter)}, "x");
        expect(readFileSync(${JSON.stringify(counter)}, "utf8")).not.toHaveLength(3);
      });`,
    );
    // Another process keeps what it prints out of this run's output.
    const repeat = (): number | null => {
      const script = `import { repeatTests } from ${JSON.stringify(join(root, "scripts/bootstrap/repeat.mjs"))};
      process.exit(await repeatTests(${JSON.stringify(directory)}, { times: 2, filters: ["test/tiny"] }));`;
      return spawnSync(process.execPath, ["--input-type=module", "-e", script], { timeout: 100_000 }).status;
    };
    expect(repeat()).toBe(0);
    expect(readFileSync(counter, "utf8")).toBe("xx");
    expect(repeat()).toBe(1);
    expect(readFileSync(counter, "utf8")).toBe("xxxx");
  });
});

describe("what format and lint look at", () => {
  test("is the tracked sources, and not what was tried beside them", () => {
    write("src/kept.ts", "");
    write("scripts/kept.mjs", "");
    write("src/removed.ts", "");
    write("src/kept.lua", "");
    git("init", "-q");
    git("add", ".");
    rmSync(join(directory, "src/removed.ts"));
    write("src/tried.mjs", "");
    write("try.mjs", "");
    expect(trackedSources(directory)).toEqual(["scripts/kept.mjs", "src/kept.ts"]);
  });
  test("is all sources where there is no repository", () =>
    expect(trackedSources(directory)).toEqual(["src", "test", "scripts", "vitest.config.ts"]));
});

describe("what types look at", () => {
  const typesOf = async (): Promise<boolean> =>
    (await checkTypes({ root: directory, isParallel: true })).failed === 0;
  beforeEach(() => {
    cpSync(join(root, "tsconfig.json"), join(directory, "tsconfig.json"));
    symlinkSync(join(root, "node_modules"), join(directory, "node_modules"));
    write("package.json", { type: "module" });
    write("src/kept.ts", 'import { cwd } from "node:process";\nexport const kept: string = cwd();\n');
    write("src/tried.ts", "export const tried: string = 1;\n");
  });
  test("is the tracked sources, and not what was tried beside them", { timeout: 60_000 }, async () => {
    git("init", "-q");
    git("add", "src/kept.ts");
    expect(await typesOf()).toBe(true);
    git("add", "src/tried.ts");
    expect(await typesOf()).toBe(false);
  });
  test("is all sources where there is no repository", { timeout: 60_000 }, async () =>
    expect(await typesOf()).toBe(false),
  );
});

describe("the closing line", () => {
  const report = (passed: number, failed: number, files: object[] = []) => ({
    numPassedTests: passed,
    numFailedTests: failed,
    testResults: files,
  });
  test("counts what passed and failed", () =>
    expect(countTests(report(3, 1), 1)).toEqual({ passed: 3, failed: 1 }));
  test("counts a file that could not be loaded", () => {
    expect(countTests(report(3, 0, [{ status: "failed", assertionResults: [] }]), 1)).toEqual({
      passed: 3,
      failed: 1,
    });
  });
  test("counts a run that failed outside of any test", () =>
    expect(countTests(report(3, 0), 1)).toEqual({ passed: 3, failed: 1 }));
});
