import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { Secret } from "../../src/base/secret.js";
import { type LogLevel, makeLog } from "../../src/telemetry/log.js";
import { compileSources } from "../support/compiled.js";

function book(level: LogLevel = "debug") {
  const lines: Record<string, unknown>[] = [];
  const log = makeLog({ level, fields: { role: "all" } }, { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) });
  return { log, lines };
}

test("a line carries its level as a word, its instant, the fields of the process, of the child and its own", () => {
  const { log, lines } = book();
  log.child({ pool: "herd" }).info({ waitedMs: 2 }, "lease granted");
  expect(lines).toEqual([
    { level: "info", time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/), pid: process.pid, role: "all", pool: "herd", waitedMs: 2, msg: "lease granted" },
  ]);
});

test("what is below the level is not written", () => {
  const { log, lines } = book("warn");
  log.debug({}, "a");
  log.info({}, "b");
  log.warn({}, "c");
  log.error({}, "d");
  expect(lines.map((line) => line["msg"])).toEqual(["c", "d"]);
});

test("secrets are hidden, by their type and by the names of their fields", () => {
  const { log, lines } = book();
  const headers = { authorization: "Bearer rk_1", cookie: "a=b" };
  log.info({ secret: "x1", any: new Secret("x2"), token: "x3", headers, proxy: { password: "x4" }, cdp_ws_url: "ws://x5" }, "said");
  expect(JSON.stringify(lines)).not.toMatch(/x[1-5]|rk_1|a=b/);
  expect(lines[0]).toMatchObject({ any: "[secret]", headers: { authorization: "[secret]" }, proxy: { password: "[secret]" } });
});

test("of an error its kind, text, code, stack and causes are said, and nothing else that hangs on it", () => {
  const { log, lines } = book();
  const cause = Object.assign(new Error("WRONGPASS"), { code: "EAUTH", command: { name: "auth", args: ["hunter2"] } });
  log.error({ error: new AggregateError([cause], "both failed", { cause }) }, "request failed");
  expect(lines[0]?.["error"]).toMatchObject({
    type: "AggregateError", message: "both failed", cause: { type: "Error", message: "WRONGPASS", code: "EAUTH" }, errors: [{ message: "WRONGPASS" }],
  });
  expect(JSON.stringify(lines)).not.toContain("hunter2");
});

test("an error that is its own cause ends somewhere", () => {
  const { log, lines } = book();
  const error = new Error("round");
  error.cause = error;
  log.error({ error }, "request failed");
  expect(JSON.stringify(lines)).toContain("[deeper]");
});

/** Runs `code` with a log in a process of its own. */
async function runProgram(format: string, code: string): Promise<{ stdout: string; status: number | null }> {
  const { directory, remove } = await compileSources();
  try {
    const module = pathToFileURL(join(directory, "src/telemetry/log.js")).href;
    const program = `const { openLog } = await import("${module}"); const log = openLog({ level: "info", format: "${format}", descriptor: 1 });\n${code}`;
    return spawnSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8" });
  } finally {
    await remove();
  }
}

test("the last line before the end of the process is not lost", async () => {
  const { stdout, status } = await runProgram("auto", 'for (let i = 0; i < 2000; i += 1) log.info({ i }, "counted");\nprocess.exit(3);');
  expect(status).toBe(3);
  expect(stdout.trimEnd().split("\n").at(-1)).toContain('"i":1999');
});

test("as text a line says when, how grave, what, and its fields; an error follows with its causes", async () => {
  const { stdout } = await runProgram("text", 'log.warn({ pool: "herd", n: 2, error: new Error("outer", { cause: new Error("inner") }) }, "launch failed");');
  expect(stdout).toMatch(/^\d\d:\d\d:\d\d\.\d{3} warn  launch failed pool=herd n=2\n  Error: outer\n/);
  expect(stdout).toMatch(/caused by\n  Error: inner/);
});
