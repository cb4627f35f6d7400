import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { startDaemon } from "../support/daemon/daemon.js";

const root = join(import.meta.dirname, "../..");
const readme = readFileSync(join(root, "README.md"), "utf8");

test("the script of the README runs as it is printed, and gives its browser back", async () => {
  const daemon = await startDaemon({ file: { pools: [{ name: "default", size: 1, headless: true }] } });
  const [, printed = ""] = /^```js\n(.*?)^```/ms.exec(readme) ?? [];
  const script = printed.replaceAll("http://127.0.0.1:4700", daemon.url);
  expect(script).not.toBe(printed);
  await daemon.poolWhen("default", (pool) => pool.available_count === 1);
  const { stdout, stderr } = await promisify(execFile)(
    process.execPath,
    ["--input-type=module", "--eval", script],
    { cwd: root, env: { PATH: process.env["PATH"], REMUDA_API_KEY: daemon.apiKey }, timeout: 60_000 },
  );
  expect([stdout, stderr]).toEqual(["Hello from Remuda\n", ""]);
  expect((await daemon.poolWhen("default", (pool) => pool.available_count === 1)).acquired_count).toBe(0);
  await daemon.stop();
});
