import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { startDaemon } from "../../support/daemon/daemon.js";

const root = join(import.meta.dirname, "../../..");
const page = readFileSync(join(root, "docs/telemetry.md"), "utf8");
const section = page.slice(page.indexOf("## Try it"), page.indexOf("## Configuration"));
const blocks = [...section.matchAll(/^```(sh|js)\n(.*?)^```/gms)].map(([, kind, text = ""]) => ({
  kind,
  text,
}));
const run = promisify(execFile);

interface Printed {
  readonly event: { readonly type: string };
}
const typesOf = (printed: readonly Printed[]): string[] => printed.map(({ event }) => event.type);

test("the commands of docs/telemetry.md run as they are printed, and show what they say", async () => {
  expect(blocks.map(({ kind }) => kind)).toEqual(["sh", "sh", "js", "sh"]);
  const [create, follow, drive, look] = blocks.map(({ text }) => text);
  const daemon = await startDaemon();
  const env = { PATH: process.env["PATH"], REMUDA: daemon.url, REMUDA_API_KEY: daemon.apiKey };
  const options = { cwd: root, env, timeout: 60_000 };
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
});
