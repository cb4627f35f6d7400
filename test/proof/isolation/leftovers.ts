import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findExecutable } from "../../../src/browser/executable.js";
import { workspaceOf } from "../../support/browser/browser-processes.js";
import { takeCensus } from "../../support/browser/chromium-census.js";
import { until } from "../../support/browser/chromium-until.js";
import { isLiving } from "../../support/living.js";
import { type Daemon, startDaemon, type Tier } from "./daemon.js";
import type { Kind } from "../arguments.js";
import { processesOf, withDescendants } from "./programs.js";
import { type Part, partOf } from "./report.js";
import type { Outcome } from "./outcome.js";

/** What nobody ends by then stays for ever. */
const endLimitMs = 30_000;
/** A process without a wall is looked for as long as one with a wall took at most. */
const survivalMs = 3000;

const outcome = (name: string, leaks: readonly string[]): Outcome => ({
  name: `leftovers: ${name}`,
  vector: "outside",
  verdict: leaks.length > 0 ? "leaked" : "held",
  leaks,
});

/**
 * Kills a daemon that has a browser of each kind, each twice and one of the two stopped, and looks what stays
 * of them.
 */
export async function tryLeftovers(tier: Tier, kinds: readonly Kind[]): Promise<Part> {
  const first = await startDaemon(tier);
  const outcomes: Outcome[] = [];
  try {
    const [running, stopped] = [await openEach(first, kinds), await openEach(first, kinds)];
    await stopAll(stopped);
    const [runningPids, stoppedPids] = [await treesOf(running), await treesOf(stopped)];
    await first.kill();
    for (const [name, pids] of [
      ["processes of a killed daemon", runningPids],
      ["processes that were stopped, of a killed daemon", stoppedPids],
    ] as const) {
      outcomes.push(outcome(name, await leftOf(pids)));
    }
    const next = await startDaemon(tier, {}, first.directory);
    try {
      const { processes, directories, cgroups } = await takeCensus(first.scratchDirectory, new Set());
      const mounts = (await readFile("/proc/self/mountinfo", "utf8"))
        .split("\n")
        .filter((line) => line.includes(`${first.scratchDirectory}/`));
      outcomes.push(
        outcome("directories, cgroups and mounts after its next start", [
          ...processes,
          ...directories,
          ...cgroups,
          ...mounts,
        ]),
      );
    } finally {
      await next.close();
    }
  } finally {
    await first.close();
  }
  return partOf(`leftovers, ${tier.name}`, { isPlain: false, outcomes, corpus: [], hasRoot: true });
}

async function openEach(daemon: Daemon, kinds: readonly Kind[]): Promise<string[]> {
  const sessions = await Promise.all(
    kinds.map((kind) => daemon.call("POST /browsers", { ...kind, timeout_seconds: 3600 })),
  );
  return sessions.map(({ session_id }) => workspaceOf(daemon.scratchDirectory, String(session_id)));
}

const treesOf = async (roots: readonly string[]): Promise<number[]> =>
  await withDescendants((await Promise.all(roots.map((root) => processesOf(root, "all")))).flat());

async function stopAll(roots: readonly string[]): Promise<void> {
  for (const pid of await treesOf(roots)) process.kill(pid, "SIGSTOP");
}

/** What is there after the limit; it is ended then. */
async function leftOf(pids: readonly number[]): Promise<string[]> {
  await until("their end", () => !pids.some(isLiving), endLimitMs).catch(() => {});
  const left = pids.filter(isLiving);
  for (const pid of left) process.kill(pid, "SIGKILL");
  return left.map((pid) => `process ${pid}`);
}

/**
 * A Chromium that a program starts as one would, stopped, and its starter killed: it has to stay, else the
 * attempt shows nothing.
 */
export async function tryLeftoversPlain(): Promise<Part> {
  const executable = (await findExecutable("headless-shell")) ?? (await findExecutable("chromium"));
  if (executable === undefined) throw new Error("Chromium is not installed");
  const directory = await mkdtemp(join(tmpdir(), "remuda-prove-"));
  const switches = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--remote-debugging-port=0",
    `--user-data-dir=${directory}/profile`,
  ];
  const starter = spawn("sh", ["-c", '"$0" "$@" & wait', executable, ...switches, "about:blank"], {
    stdio: "ignore",
    env: { PATH: process.env["PATH"] ?? "", HOME: directory, TMPDIR: directory },
  });
  try {
    await until(
      "its processes",
      async () => (await withDescendants(await processesOf(directory))).length > 2,
      endLimitMs,
    );
    await stopAll([directory]);
    starter.kill("SIGKILL");
    await until("its end", async () => (await processesOf(directory)).length === 0, survivalMs).catch(
      () => {},
    );
    const left = await processesOf(directory);
    const name = "leftovers: processes that were stopped, of a killed daemon";
    const survived: Outcome = {
      ...outcome(
        "",
        left.map((pid) => `process ${pid}`),
      ),
      name,
    };
    return partOf("no walls, leftovers", {
      isPlain: true,
      outcomes: [survived],
      corpus: [{ name, vector: "outside", succeedsPlain: true, run: async () => {} }],
      hasRoot: true,
    });
  } finally {
    for (const pid of await processesOf(directory)) process.kill(pid, "SIGKILL");
    await rm(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
  }
}
