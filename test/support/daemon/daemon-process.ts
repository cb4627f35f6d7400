import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";
import { isLiving } from "../living.js";
import { bound } from "../bound.js";
import { compiled } from "../compiled.js";
import { until } from "../browser/chromium-until.js";
import { assertNothingLeft, DaemonClient } from "./daemon.js";
import type { DaemonPlace } from "./daemon-settings.js";
import { redisPidIn, urlIn } from "./said.js";

/** The daemon of this moment, as a build would put it. */
const main = join(compiled, "src/main.js");

/** A daemon in a process of its own, there to be killed. */
export class DaemonProcess extends DaemonClient {
  constructor(
    url: string,
    readonly place: DaemonPlace,
    private readonly running: { child: ChildProcess; closed: Promise<unknown>; said: () => string },
  ) {
    super(url, place.apiKey);
  }

  get pid(): number {
    return this.running.child.pid ?? -1;
  }
  get log(): string {
    return this.running.said();
  }
  get port(): number {
    return Number(new URL(this.url).port);
  }

  /** Sends a signal and resolves with how the process ended. */
  async end(signal: NodeJS.Signals): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
    this.signal(signal);
    return await this.ended();
  }

  signal(signal: NodeJS.Signals): void {
    this.running.child.kill(signal);
  }

  /** Resolves once everything that it has printed is read, too. */
  async ended(): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
    const { child, closed } = this.running;
    await closed;
    return { code: child.exitCode, signal: child.signalCode };
  }

  /**
   * Ends it as a user would, and fails where anything of it is left, or of the run before whose log is given.
   */
  async stop(earlierLog = ""): Promise<void> {
    const { code } = await this.end("SIGTERM");
    if (code !== 0) throw new Error(`the daemon ended with ${code}: ${this.log.slice(-2000)}`);
    await assertNothingLeft(this.place, earlierLog + this.log);
    this.place.remove();
  }
}

/** `through`: a command that becomes the daemon, such as one that takes rights away. */
export async function spawnDaemon(
  place: DaemonPlace,
  through: readonly string[] = [],
): Promise<DaemonProcess> {
  let said = "";
  const [program = "", ...args] = [...through, ...bound(process.execPath, "--enable-source-maps", main)];
  const child = spawn(program, args, {
    cwd: dirname(main),
    env: place.environment,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const closed = once(child, "close");
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (said += text));
  // What a failing test has not stopped; its browsers end with it.
  onTestFinished(() => {
    child.kill("SIGKILL");
    if (isRedisLiving(said)) process.kill(redisPidIn(said), "SIGKILL");
  });
  const url = await until(
    "the daemon listening",
    async () => {
      if (child.exitCode === null && child.signalCode === null) return urlIn(said);
      // What it said last may still be in the pipe.
      await closed;
      throw new Error(`the daemon did not start: ${said}`);
    },
    100_000,
  );
  return new DaemonProcess(url, place, { child, closed, said: () => said });
}

export const isRedisLiving = (log: string): boolean => isLiving(redisPidIn(log));
