import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { bound } from "./bound.js";
import { nothing, takeCensus } from "./browser/chromium-census.js";
import { until } from "./browser/chromium-until.js";
import { clearKilledRuns, newDirectory, newScratchDirectory } from "./killed-runs.js";
import { isLiving } from "./living.js";

interface Started {
  readonly pids: readonly number[];
  readonly scratchDirectories: readonly string[];
}

/** What it starts is started on a machine that is busy with other tests. */
const limitMs = 240_000;
const root = join(import.meta.dirname, "../..");

test(
  "of a test run that is killed no Redis, no daemon and no browser is left, and the next run clears the rest",
  { timeout: limitMs + 60_000 },
  async () => {
    const directory = mkdtempSync(join(tmpdir(), "remuda-test-killed-run-"));
    onTestFinished(() => rmSync(directory, { recursive: true, maxRetries: 10, retryDelay: 50 }));
    const started = join(directory, "started");
    const vitest = join(root, "node_modules/vitest/vitest.mjs");
    const config = join(import.meta.dirname, "killed-run.config.ts");
    const [program = "", ...args] = bound(process.execPath, vitest, "run", "--config", config);
    const env = { PATH: process.env["PATH"] ?? "", REMUDA_STARTED: started, TMPDIR: directory };
    const run = spawn(program, args, { env, stdio: ["ignore", "pipe", "pipe"] });
    onTestFinished(async () => {
      if (run.exitCode !== null || run.signalCode !== null) return;
      run.kill("SIGKILL");
      await once(run, "exit");
    });
    let said = "";
    for (const stream of [run.stdout, run.stderr])
      stream.setEncoding("utf8").on("data", (text: string) => (said += text));
    const { pids, scratchDirectories } = await until(
      "its processes",
      () => {
        if (run.exitCode !== null) throw new Error(`the run ended: ${said}`);
        const text = readFileSync(started, { encoding: "utf8", flag: "a+" });
        return text === "" ? undefined : (JSON.parse(text) as Started);
      },
      limitMs,
    );
    // Three Redis, two daemons (one of them the worker) with a browser each, and a plain one.
    expect(pids.length).toBeGreaterThan(8);
    run.kill("SIGKILL");
    await once(run, "exit");
    onTestFinished(clearKilledRuns);
    await until("their end", () => pids.every((pid) => !isLiving(pid))).catch(() => {
      throw new Error(`left: ${pids.filter(isLiving).map(nameOf).join(", ")}`);
    });
    expect(scratchDirectories.map((path) => existsSync(path))).toEqual([true, true]);
    const mine = [newScratchDirectory(), newDirectory("mine")];
    onTestFinished(() => mine.forEach((path) => rmSync(path, { recursive: true })));
    await clearKilledRuns();
    expect(mine.map((path) => existsSync(path))).toEqual([true, true]);
    expect(scratchDirectories.map((path) => existsSync(path))).toEqual([false, false]);
    for (const path of scratchDirectories) expect(await takeCensus(path, new Set())).toEqual(nothing);
  },
);

const nameOf = (pid: number): string => readFileSync(`/proc/${pid}/comm`, "utf8").trim();
