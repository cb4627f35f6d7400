import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { pause, systemClock } from "../../src/base/clock.js";
import { findExecutable } from "../../src/browser/executable.js";
import { type Daemon, startDaemon } from "./support/daemon.js";
import type { Line } from "./support/line.js";
import type { Report } from "./support/report.js";

/** One after the other: 10 browsers, then 50 altogether. */
const poolSizes = [10, 40] as const;
const settleMs = 3000;
const bytesPerMiB = 2 ** 20;

/** What the daemon itself takes, its browsers aside. */
export async function benchMemory(): Promise<Report> {
  const engine = (await findExecutable("headless-shell")) === undefined ? "chromium" : "headless-shell";
  const daemon = await startDaemon();
  const rows: string[][] = [];
  let browsers = 0;
  try {
    const line = await daemon.open();
    const look = async (): Promise<void> => {
      await pause(systemClock, settleMs);
      rows.push([String(browsers), ...(await figuresOf(daemon, line))]);
    };
    await look();
    for (const size of poolSizes) {
      await daemon.createPool({ name: `bench-${size}`, size, engine });
      browsers += size;
      await look();
    }
    line.close();
  } finally {
    await daemon.stop();
  }
  return {
    title: "Memory of the daemon itself, in MiB",
    method: [
      `One run, ${settleMs / 1000} s after the last browser (${engine}) was idle; its Redis beside it, its browsers not counted.`,
    ],
    head: ["browsers", "daemon RSS", "heap used", "redis RSS"],
    rows,
    bars: [],
  };
}

async function figuresOf({ pid, redisPid }: Daemon, line: Line): Promise<string[]> {
  const { body } = await line.get("/metrics");
  const heap = Number(/^nodejs_heap_size_used_bytes (\d+)/m.exec(body)?.[1] ?? Number.NaN);
  return [await residentBytes(pid), heap, await residentBytes(redisPid)].map((bytes) =>
    (bytes / bytesPerMiB).toFixed(0),
  );
}

async function residentBytes(pid: number): Promise<number> {
  const { stdout } = await promisify(execFile)("ps", ["-o", "rss=", "-p", String(pid)]);
  return Number(stdout) * 1024;
}
