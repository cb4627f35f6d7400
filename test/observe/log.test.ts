import { type ChildProcessByStdio, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Readable, Writable } from "node:stream";
import { expect, onTestFinished, test } from "vitest";
import { CannotStart } from "../../src/base/cannot-start.js";
import { Secret } from "../../src/base/crypto/secret.js";
import { type LogLevel, makeLog } from "../../src/observe/log.js";
import { compiled } from "../support/compiled.js";

function book(level: LogLevel = "debug") {
  const lines: Record<string, unknown>[] = [];
  const log = makeLog(
    { level, fields: { role: "all" } },
    { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
  );
  return { log, lines };
}

test("a line carries its level as a word, its instant, the fields of the process, of the child and its own", () => {
  const { log, lines } = book();
  log.child({ pool: "herd" }).info({ waitedMs: 2 }, "lease granted");
  expect(lines).toEqual([
    {
      level: "info",
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      pid: process.pid,
      role: "all",
      pool: "herd",
      waitedMs: 2,
      msg: "lease granted",
    },
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
  log.info(
    {
      secret: "x1",
      any: new Secret("x2"),
      token: "x3",
      headers,
      proxy: { password: "x4" },
      cdp_ws_url: "ws://x5",
    },
    "said",
  );
  expect(JSON.stringify(lines)).not.toMatch(/x[1-5]|rk_1|a=b/);
  expect(lines[0]).toMatchObject({
    any: "[secret]",
    headers: { authorization: "[secret]" },
    proxy: { password: "[secret]" },
  });
});

test("of an error its kind, text, code, stack and causes are said, and nothing else that hangs on it", () => {
  const { log, lines } = book();
  const cause = Object.assign(new Error("WRONGPASS"), {
    code: "EAUTH",
    command: { name: "auth", args: ["hunter2"] },
  });
  log.error({ error: new AggregateError([cause], "both failed", { cause }) }, "request failed");
  expect(lines[0]?.["error"]).toMatchObject({
    type: "AggregateError",
    message: "both failed",
    cause: { type: "Error", message: "WRONGPASS", code: "EAUTH" },
    errors: [{ message: "WRONGPASS" }],
  });
  expect(JSON.stringify(lines)).not.toContain("hunter2");
});

test("why a daemon cannot start is said once", () => {
  const { log, lines } = book();
  log.error({ error: new CannotStart("the port is taken") }, "daemon could not start or stop");
  expect(lines[0]?.["error"]).toEqual({ type: "CannotStart", message: "the port is taken" });
});

test("an error that is its own cause ends somewhere", () => {
  const { log, lines } = book();
  const error = new Error("round");
  error.cause = error;
  log.error({ error }, "request failed");
  expect(JSON.stringify(lines)).toContain("[deeper]");
});

const urlOf = (path: string): string => pathToFileURL(join(compiled, path)).href;

/** The text of a program with a log of its own: `log`, `close`, and what it may count. */
const programOf = (options: object, code: string): string => `
  const { openLog } = await import("${urlOf("src/observe/log.js")}");
  const { droppedLines } = await import("${urlOf("src/observe/log-writer.js")}");
  const { systemClock: clock } = await import("${urlOf("src/base/clock.js")}");
  const given = ${JSON.stringify({ level: "info", format: "auto", descriptor: 1, bufferBytes: 65_536, maxLinesPerSecond: null, ...options })};
  const { log, close } = openLog({ ...given, clock });
  ${code}`;

/** Runs `code` with a log in a process of its own, whose output is read at once. */
const runProgram = (
  options: object,
  code: string,
): { stdout: string; stderr: string; status: number | null } =>
  spawnSync(process.execPath, ["--input-type=module", "-e", programOf(options, code)], {
    encoding: "utf8",
    timeout: 60_000,
  });

/** The same where its output is read only when the test does; its end is when all of that was read. */
function startProgram(code: string): {
  child: ChildProcessByStdio<Writable, Readable, Readable>;
  ended: Promise<number | null>;
} {
  const child = spawn(process.execPath, ["--input-type=module", "-e", programOf({}, code)], {
    stdio: ["pipe", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  return { child, ended: once(child, "close").then(([status]: (number | null)[]) => status ?? null) };
}

/** Says far more than the pipe and the buffer hold. */
const flood = `
  const turns = async (many) => { for (let i = 0; i < many; i += 1) await new Promise(setImmediate); };
  for (let i = 0; i < 200; i += 1) { for (let j = 0; j < 100; j += 1) log.info({ i, j, text: "x".repeat(500) }, "said"); await turns(1); }`;

test("the last line before the end of the process is not lost", () => {
  const { stdout, status } = runProgram(
    { bufferBytes: 2 ** 20 },
    'for (let i = 0; i < 2000; i += 1) log.info({ i }, "counted");\nawait close(5000);\nprocess.exit(3);',
  );
  expect(status).toBe(3);
  expect(stdout.trimEnd().split("\n").at(-1)).toContain('"i":1999');
});

test("a pipe that nobody reads holds up neither the process nor its end, and costs only lines", async () => {
  const { child, ended } = startProgram(`${flood}
    await close(200);
    process.stderr.write(JSON.stringify({ dropped: droppedLines.buffer_full, rss: process.memoryUsage.rss() }));
    process.exit(3);`);
  let told = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (told += text));
  // It would never end if it waited for a reader.
  expect(await ended).toBe(3);
  const { dropped, rss } = JSON.parse(told) as Record<string, number>;
  expect(dropped).toBeGreaterThan(15_000);
  expect(rss).toBeLessThan(200 * 2 ** 20);
});

test("a reader who comes late is told how many lines it has missed", async () => {
  const { child, ended } =
    startProgram(`${flood} process.stderr.write("said"); while (droppedLines.buffer_full === 0 || !globalThis.hasTurned) { await turns(1); globalThis.hasTurned = true; }
    await close(5000); process.exit(0);`);
  await once(child.stderr, "data");
  let read = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (read += text));
  expect(await ended).toBe(0);
  const lines = read
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as { msg: string; dropped?: number });
  const said = lines.filter(({ msg }) => msg === "said").length;
  expect(lines.at(-1)).toMatchObject({
    level: "warn",
    msg: "log lines dropped: they were not read fast enough",
    dropped: 20_000 - said,
  });
});

test("a reader who has gone is no reason to end, and its lines are counted", async () => {
  const { child, ended } =
    startProgram(`process.stderr.write("ready"); await new Promise((resolve) => process.stdin.once("data", resolve)); ${flood}
    await close(5000);
    process.stderr.write(JSON.stringify(droppedLines));
    process.exit(4);`);
  let told = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (told += text));
  await once(child.stderr, "data");
  child.stdout.destroy();
  child.stdin.write("it has gone");
  expect(await ended).toBe(4);
  expect((JSON.parse(told.slice("ready".length)) as Record<string, number>)["output_closed"]).toBeGreaterThan(
    15_000,
  );
});

test("of one message about one browser only so many lines are written a second, and the others are told in one", () => {
  const { stdout } = runProgram(
    { maxLinesPerSecond: 5 },
    `
    for (let i = 0; i < 300; i += 1) { log.info({ browser: "a", i }, "crashed"); log.warn({ browser: "b" }, "crashed"); log.error({}, "failed"); }
    log.info({ browser: "a" }, "another"); await close(1000); process.exit(0);`,
  );
  const lines = stdout
    .trimEnd()
    .split("\n")
    .map(
      (line) => JSON.parse(line) as { msg: string; browser?: string; suppressed?: number; message?: string },
    );
  const many = (msg: string, browser?: string): number =>
    lines.filter((line) => line.msg === msg && line.browser === browser).length;
  expect([many("crashed", "a"), many("crashed", "b"), many("failed"), many("another", "a")]).toEqual([
    5, 5, 5, 1,
  ]);
  expect(
    lines
      .filter(({ suppressed }) => suppressed)
      .map(({ message, browser, suppressed }) => [message, browser, suppressed]),
  ).toEqual([
    ["crashed", "a", 295],
    ["crashed", "b", 295],
    ["failed", undefined, 295],
  ]);
});

test("what an outsider says makes no line of its own, moves no cursor and has an end", () => {
  const forged = "x\n12:00:00.000 info  admin let in\u001b[2J\u009b2J\u202e";
  const code = `log.warn({ text: ${JSON.stringify(forged)}, long: "y".repeat(50000), error: new Error(${JSON.stringify(forged)} + "z".repeat(50000)) }, "refused");
    await close(1000); process.exit(0);`;
  for (const format of ["text", "json"]) {
    const { stdout } = runProgram({ format }, code);
    expect(stdout).not.toMatch(/^12:00:00/m);
    expect(stdout.replaceAll(/[\n\u202e]/g, "")).not.toMatch(/\p{Cc}/u);
    expect(stdout.length).toBeLessThan(20_000);
  }
});

test("as text a line says when, how grave, what, and its fields; an error follows with its causes", () => {
  const { stdout } = runProgram(
    { format: "text" },
    'log.warn({ pool: "herd", n: 2, why: "two words", error: new Error("outer", { cause: new Error("inner") }) }, "launch failed"); await close(1000); process.exit(0);',
  );
  expect(stdout).toMatch(
    /^\d\d:\d\d:\d\d\.\d{3} warn  launch failed pool=herd n=2 why="two words"\n  Error: outer\n/,
  );
  expect(stdout).toMatch(/caused by\n  Error: inner/);
});
