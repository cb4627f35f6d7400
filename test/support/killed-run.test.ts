import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { bound } from "./bound.js";
import { until } from "./browser/chromium-until.js";
import { isLiving } from "./living.js";

const root = join(import.meta.dirname, "../..");

test(
  "of a test run that is killed no Redis, no daemon and no browser is left",
  { timeout: 180_000 },
  async () => {
    const directory = mkdtempSync(join(tmpdir(), "remuda-test-killed-run-"));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    const started = join(directory, "started");
    const vitest = join(root, "node_modules/vitest/vitest.mjs");
    const config = join(import.meta.dirname, "killed-run.config.ts");
    const [program = "", ...args] = bound(process.execPath, vitest, "run", "--config", config);
    const env = { PATH: process.env["PATH"] ?? "", REMUDA_STARTED: started, TMPDIR: directory };
    const run = spawn(program, args, { env, stdio: ["ignore", "pipe", "pipe"] });
    let said = "";
    for (const stream of [run.stdout, run.stderr])
      stream.setEncoding("utf8").on("data", (text: string) => (said += text));
    const pids = await until(
      "its processes",
      () => {
        if (run.exitCode !== null) throw new Error(`the run ended: ${said}`);
        const text = readFileSync(started, { encoding: "utf8", flag: "a+" });
        return text === "" ? undefined : text.split(" ").map(Number);
      },
      120_000,
    );
    // Three Redis, two daemons (one of them the worker) with a browser each, and a plain one.
    expect(pids.length).toBeGreaterThan(8);
    run.kill("SIGKILL");
    await once(run, "exit");
    await until("their end", () => pids.every((pid) => !isLiving(pid)), 30_000).catch(() => {
      throw new Error(`left: ${pids.filter(isLiving).map(nameOf).join(", ")}`);
    });
  },
);

const nameOf = (pid: number): string => readFileSync(`/proc/${pid}/comm`, "utf8").trim();
