import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");
interface Parts {
  "packages.mjs": { hasPackages(root: string): boolean };
  "build.mjs": {
    build(root: string, name: string): Promise<string>;
    digestOf(root: string, target: { project: string; folders: readonly string[] }): string;
  };
  "system.mjs": {
    commandFor(system: string, missing: readonly string[]): string;
    needsOfConfig(root: string, env: object): { required: string[] };
    needsOfIsolationProof(args: readonly string[]): { required: string[] };
    needsOfTests: { required: string[] };
    isKnownTo(system: string, tool: string): boolean;
    tools: Record<"chromium" | "shell", { places: string[] }>;
  };
}
const part = <Name extends keyof Parts>(name: Name): Promise<Parts[Name]> =>
  import(join(root, "scripts/bootstrap", name));
const { hasPackages } = await part("packages.mjs");
const { build, digestOf } = await part("build.mjs");
const { commandFor, needsOfConfig, needsOfIsolationProof, needsOfTests, isKnownTo, tools } =
  await part("system.mjs");

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "remuda-test-bootstrap-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const write = (path: string, content: string | object): void => {
  mkdirSync(join(directory, path, ".."), { recursive: true });
  writeFileSync(join(directory, path), typeof content === "string" ? content : JSON.stringify(content));
};
const bootstrap = (
  at: string,
  ...args: string[]
): Promise<{ code: number; stderr: string; stdout: string }> =>
  new Promise((resolve) => {
    execFile(process.execPath, [join(at, "scripts/bootstrap.mjs"), ...args], (error, stdout, stderr) =>
      resolve({ code: typeof error?.code === "number" ? error.code : 0, stderr, stdout }),
    );
  });

describe("commands", () => {
  test("an unknown command is refused with the list of those there are", async () => {
    const { code, stderr } = await bootstrap(root, "stat");
    expect([code, stderr.includes("start [--help]")]).toEqual([2, true]);
  });
  test.each(["test", "check", "prove:crd", "prove:image", "prove:faults"])(
    "%s tells by --help and by -h, and runs nothing",
    async (name) => {
      cpSync(join(root, "scripts/bootstrap.mjs"), join(directory, "scripts/bootstrap.mjs"));
      for (const asking of ["--help", "-h"]) {
        const { code, stderr } = await bootstrap(directory, name, asking);
        expect([code, stderr.includes(`\n  ${name} `)]).toEqual([0, true]);
      }
    },
  );
  test("a Node.js that is too old is named before anything else is tried", async () => {
    cpSync(join(root, "scripts/bootstrap.mjs"), join(directory, "scripts/bootstrap.mjs"));
    write("package.json", { engines: { node: ">=99.1" } });
    const { code, stderr } = await bootstrap(directory, "start");
    expect([code, stderr]).toEqual([2, expect.stringMatching(/needs Node\.js >=99\.1, and this is v\d/)]);
  });
  // exec: npm passes a signal to its shell, and a shell between us would end and leave us running.
  test("each is a script of package.json", () => {
    const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
      scripts: Record<string, string>;
    };
    for (const name of [
      "start",
      "test",
      "check",
      "dev",
      "bench",
      "prove:egress",
      "prove:isolation",
      "prove:crd",
      "prove:image",
      "prove:faults",
      "audit:verify",
      "vault:rewrap",
      "simulate",
    ])
      expect(scripts[name]).toBe(`exec node scripts/bootstrap.mjs ${name}`);
  });
});

describe("the proof of isolation", () => {
  const wants = (...args: readonly string[]): boolean =>
    needsOfIsolationProof(args).required.includes("containers");
  test("wants a runtime of containers", () => {
    expect([wants(), wants("--tier", "user,container"), wants("--quick")]).toEqual([true, true, true]);
  });
  test("wants none where containers are left out", () => {
    expect([wants("--without-containers"), wants("--tier", "user"), wants("--help")]).toEqual([
      false,
      false,
      false,
    ]);
  });
});

describe("npm packages", () => {
  const locks = (wanted: object, installed?: object): boolean => {
    write("package-lock.json", { packages: { "": {}, ...wanted } });
    if (installed) write("node_modules/.package-lock.json", { packages: installed });
    for (const path of Object.keys(installed ?? {})) write(`${path}/package.json`, {});
    return hasPackages(directory);
  };
  const a = { "node_modules/a": { integrity: "1" } };

  test("nothing installed is not enough", () => expect(locks(a)).toBe(false));
  test("exactly what the lock wants is", () => expect(locks(a, a)).toBe(true));
  test("one whose files are gone is not", () => {
    locks(a, a);
    rmSync(join(directory, "node_modules/a"), { recursive: true });
    expect(hasPackages(directory)).toBe(false);
  });
  test("another version is not", () =>
    expect(locks(a, { "node_modules/a": { integrity: "2" } })).toBe(false));
  test("one that is gone from the lock is not", () =>
    expect(locks(a, { ...a, "node_modules/b": {} })).toBe(false));
  test("an optional one for another platform may be absent, any other may not", () => {
    expect(locks({ ...a, "node_modules/b": { optional: true } }, a)).toBe(true);
    expect(locks({ ...a, "node_modules/b": {} }, a)).toBe(false);
  });
  test("this checkout's lock names every package for every platform", () => {
    type Entry = { integrity?: string; resolved?: string; optionalDependencies?: Record<string, string> };
    const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
      packages: Record<string, Entry>;
    };
    const names = new Set(Object.keys(packages).map((path) => path.split("node_modules/").at(-1)));
    const absent = Object.values(packages).flatMap((entry) =>
      Object.keys(entry.optionalDependencies ?? {}).filter((name) => !names.has(name)),
    );
    expect(absent).toEqual([]);
    expect(Object.values(packages).filter((entry) => entry.resolved !== undefined)).toEqual([]);
  });
});

describe("build", () => {
  const target = { project: "src/tsconfig.json", folders: ["src"] };
  beforeEach(() => {
    for (const file of ["tsconfig.json", "src/tsconfig.json", "package-lock.json", "src/a.ts"])
      write(file, "{}");
  });
  test("is due when a source is changed, added or removed", () => {
    const digests = [digestOf(directory, target)];
    write("src/a.ts", "{ }");
    digests.push(digestOf(directory, target));
    write("src/lua/b.lua", "");
    digests.push(digestOf(directory, target));
    rmSync(join(directory, "src/a.ts"));
    digests.push(digestOf(directory, target));
    expect(new Set(digests).size).toBe(4);
  });
  test("is not due when a file is only touched, or the bootstrap changed", () => {
    const before = digestOf(directory, target);
    write("src/a.ts", "{}");
    write("scripts/bootstrap/x.mjs", "");
    expect(digestOf(directory, target)).toBe(before);
  });
  test("sources that do not compile are refused and leave the last build in place", async () => {
    cpSync(join(root, "tsconfig.json"), join(directory, "tsconfig.json"));
    cpSync(join(root, "src/tsconfig.json"), join(directory, "src/tsconfig.json"));
    symlinkSync(join(root, "node_modules"), join(directory, "node_modules"));
    write("package.json", { type: "module" });
    write("src/a.ts", "export const a: number = 1;\n");
    write("src/lua/b.lua", "return 1");
    const output = await build(directory, "daemon");
    expect(readFileSync(join(output, "src/a.js"), "utf8")).toContain("a = 1");
    expect(readFileSync(join(output, "src/lua/b.lua"), "utf8")).toBe("return 1");
    write("src/a.ts", "export const a: number = true;\n");
    await expect(build(directory, "daemon")).rejects.toThrow(/do not compile:\nsrc\/a\.ts\(1,14\)/);
    expect(readFileSync(join(output, "src/a.js"), "utf8")).toContain("a = 1");
  });
});

describe("system packages", () => {
  const needed = (env: object, file: object = {}): string[] => {
    write("config/default.json", file);
    return needsOfConfig(directory, env).required;
  };
  test("all of them by default", () => {
    expect(needed({}).toSorted()).toEqual(["chromium", "display", "limits", "parent", "redis", "root"]);
  });
  test("no Redis where one is given, no browser where none runs", () => {
    expect(needed({ REDIS_URL: "redis://r", REMUDA_ROLE: "control" })).toEqual(["parent"]);
    expect(needed({}, { redis: { url: "redis://r" }, role: "control" })).toEqual(["parent"]);
  });
  test("no Chromium where another is named", () => {
    expect(needed({ REMUDA_CHROMIUM: "/opt/c" })).not.toContain("chromium");
  });
  test("the command to type is exact", () => {
    const missing = ["chromium", "redis", "display"];
    expect(commandFor("debian", missing)).toBe(
      "sudo apt-get update && sudo apt-get install --no-install-recommends chromium redis-server xvfb",
    );
    expect(commandFor("fedora", missing)).toBe(
      "sudo dnf install chromium /usr/bin/redis-server /usr/bin/Xvfb",
    );
    expect(commandFor("mac", missing)).toBe("brew install --cask google-chrome && brew install redis");
    expect(commandFor("ubuntu", ["redis"])).toBe("sudo apt-get update && sudo apt-get install redis-server");
  });
  test("what the tests need is asked for where a system has it, and can be installed there", () => {
    for (const name of ["fedora", "debian"]) {
      const asked = needsOfTests.required.filter((tool) => isKnownTo(name, tool));
      expect(asked.filter((tool) => commandFor(name, [tool]).endsWith(" "))).toEqual([]);
    }
    expect([isKnownTo("fedora", "profiles"), isKnownTo("debian", "profiles")]).toEqual([false, true]);
  });
  test("Chromium is looked for where the daemon looks for it", () => {
    const places = (text: string): string[] =>
      [...text.matchAll(/"(\/[^"]+)"/g)].map((match) => match[1] ?? "");
    const table =
      /const places[^=]*= \{(.*?)\n\};/s.exec(
        readFileSync(join(root, "src/browser/executable.ts"), "utf8"),
      )?.[1] ?? "";
    expect([...tools.chromium.places, ...tools.shell.places]).toEqual(places(table));
  });
});
