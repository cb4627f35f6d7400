import type { Readable, Writable } from "node:stream";
import { systemClock } from "../../../src/base/clock.js";
import { within } from "../../../src/base/deadline.js";
import type { Engine } from "../../../src/browser/chromium.js";
import { findExecutable } from "../../../src/browser/executable.js";
import { openPipe, type Pipe } from "../../../src/browser/cdp/pipe.js";
import { findSandbox } from "../../../src/browser/isolation/sandbox.js";
import { startWalled } from "../../../src/browser/isolation/syscall-filter.js";
import type { Walls } from "../../../src/browser/isolation/walls.js";
import { switchesOf } from "../../../src/browser/switches.js";
import { launchSpec } from "../../support/browser/chromium-host.js";
import { endGroup } from "../../support/living.js";

/** A Chromium that was only spawned: no uid, namespace, policy or cap of its own. */
export interface Bare {
  readonly pipe: Pipe;
  end(): Promise<void>;
}

const replyLimitMs = 30_000;
/** The daemon's default for headless browsers. */
export const viewport = { width: 1920, height: 1080 };

/**
 * The executable and switches the daemon would use. Chromium's sandbox refuses to run as root, so there it is
 * off.
 */
export async function bareCommand(
  engine: Engine,
  profile: string,
): Promise<{ executable: string; switches: string[] }> {
  const executable = await findExecutable(engine);
  if (executable === undefined) throw new Error(`${engine} is not installed`);
  const sandbox = process.getuid?.() === 0 ? "none" : await findSandbox(executable, null);
  return { executable, switches: switchesOf(launchSpec({ engine, viewport }), { profile, sandbox }) };
}

/** Resolves at the first CDP reply. */
export async function spawnBare(
  executable: string,
  switches: readonly string[],
  walls: Pick<Walls, "filter"> = {},
): Promise<Bare> {
  const child = await startWalled(walls, [executable, ...switches], {
    stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"],
    detached: true,
  });
  const [, , , input, output] = child.stdio;
  const pipe = openPipe(input as Writable, output as Readable);
  const replied = new Promise<void>((resolve) => pipe.onFrame(() => resolve()));
  pipe.send(JSON.stringify({ id: 1, method: "Browser.getVersion", params: {} }));
  try {
    await within(systemClock, { what: "the first reply of Chromium", limitMs: replyLimitMs }, replied);
  } catch (error) {
    await endGroup(child);
    throw error;
  }
  return { pipe, end: () => endGroup(child) };
}
