import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import { startDaemon } from "../../support/daemon/daemon.js";
import { blocksBetween, repository } from "../../support/documentation.js";
import { OtlpReceiver } from "../../support/telemetry/otlp-receiver.js";

const run = promisify(execFile);
/** Each of the programs that a test runs in turn has a limit of its own. */
const limitMs = 400_000;

interface Printed {
  readonly event: { readonly type: string };
}
const typesOf = (printed: readonly Printed[]): string[] => printed.map(({ event }) => event.type);

test(
  "the commands of docs/telemetry.md run as they are printed, and show what they say",
  async () => {
    const blocks = blocksBetween("docs/telemetry.md", "## Try it", "## Configuration");
    expect(blocks.map(({ kind }) => kind)).toEqual(["sh", "sh", "js", "sh"]);
    const [create, follow, drive, look] = blocks.map(({ text }) => text);
    const daemon = await startDaemon();
    const env = { PATH: process.env["PATH"], REMUDA: daemon.url, REMUDA_API_KEY: daemon.apiKey };
    const options = { cwd: repository, env, timeout: 110_000 };
    // The first line says where a daemon of `npm start` and its key are.
    const [exports, ...creating] = (create ?? "").split("\n");
    expect(exports).toMatch(/^export REMUDA=/);
    const created = await run("sh", ["-c", creating.join("\n")], options);
    expect(JSON.parse(created.stdout)).toMatchObject({ name: "told" });
    const following = run("sh", ["-c", follow ?? ""], options);
    const driven = await run(process.execPath, ["--input-type=module", "--eval", drive ?? ""], options);
    expect(driven.stderr).toBe("");
    expect(driven.stdout).toMatch(/cdp_command Page\.navigate\n/);
    expect(driven.stdout).toMatch(/cdp_command Input\.dispatchMouseEvent\n/);
    expect(driven.stdout).toContain("page_load");
    const { stdout: streamed } = await following;
    const frames = streamed.split("\n").filter((line) => line.startsWith("data: "));
    const printed = frames.map((line) => JSON.parse(line.slice("data: ".length)) as Printed);
    const kept = JSON.parse((await run("sh", ["-c", look ?? ""], options)).stdout) as Printed[];
    for (const type of ["cdp_connect", "cdp_command", "page_load", "cdp_disconnect"]) {
      expect(typesOf(printed)).toContain(type);
      expect(typesOf(kept)).toContain(type);
    }
    await daemon.stop();
  },
  limitMs,
);

test(
  "the trace of docs/telemetry.md is whole in a viewer that unpacks nothing, by the programs printed there",
  async () => {
    const blocks = blocksBetween("docs/telemetry.md", "### A trace in a viewer", "## Flight recorder");
    expect(blocks.map(({ kind }) => kind)).toEqual(["sh", "sh", "js", "sh"]);
    const viewer = await new OtlpReceiver().start();
    const here = (text: string): string => text.replace(/\b4318\b/g, String(viewer.port));
    const [, configure, trace, register] = blocks.map(({ text }) => here(text));
    const [, file = ""] = /echo '(.*)'/.exec(configure ?? "") ?? [];
    // An acquire waits as long as its pool may take to fill, which other daemons of tests do within a second.
    const waiting = { fill: { default_rate_per_minute: 100 }, acquire: { max_wait_seconds: 100 } };
    const daemon = await startDaemon({ file: { ...JSON.parse(file), ...waiting } });
    const env = { PATH: process.env["PATH"], REMUDA: daemon.url, REMUDA_API_KEY: daemon.apiKey };
    const options = { cwd: repository, env, timeout: 110_000 };
    const [, ...registering] = (register ?? "").replace("node traced.mjs", "").split("\n");
    await run("sh", ["-c", registering.join("\n")], options);
    const traced = await run(process.execPath, ["--input-type=module", "--eval", trace ?? ""], options);
    expect(traced.stderr).toBe("");
    const of = (name: string) => viewer.spans.filter((span) => span.name === name);
    await until("the spans", () => of("navigation").length === 2 && of("hand-out")[0]);
    const own = viewer.requests.find(({ headers }) => headers["content-type"] === "application/json");
    const [task] = JSON.parse(String(own?.bytes)).resourceSpans[0].scopeSpans[0].spans;
    expect(traced.stdout).toContain(`#trace=${task.traceId}\n`);
    const parents = [task.spanId, ...viewer.spans.map(({ spanId }) => spanId)];
    expect(viewer.spans.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["acquire", "hand-out", "connect", "first command", "navigation"]),
    );
    expect(viewer.spans.every(({ traceId }) => traceId === task.traceId)).toBe(true);
    expect(viewer.spans.every(({ parentId }) => parents.includes(parentId))).toBe(true);
    expect(of("acquire")[0]?.parentId).toBe(task.spanId);
    expect(viewer.requests.every(({ headers }) => headers["content-encoding"] === undefined)).toBe(true);
    await daemon.stop();
    await viewer.close();
  },
  limitMs,
);
