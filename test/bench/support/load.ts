import { pause, systemClock } from "../../../src/base/clock.js";
import type { Line } from "./line.js";

/** A server under load: the daemon or the floor. */
export interface Side {
  readonly lines: readonly Line[];
  readonly acquirePath: string;
  readonly releasePath: string;
}

/** One run: how long each acquire and release took, in µs, and whole cycles per second. */
export interface Sample {
  readonly acquires: readonly number[];
  readonly releases: readonly number[];
  readonly cyclesPerSecond: number;
}

export interface Lease {
  readonly session_id: string;
  readonly lease_id: string;
  readonly cdp_ws_url: string;
}

class Times {
  readonly acquires: number[] = [];
  readonly releases: number[] = [];

  async acquire({ acquirePath }: Side, line: Line): Promise<Lease> {
    const started = systemClock.monotonic();
    const { status, body } = await line.post(acquirePath, "{}");
    this.acquires.push((systemClock.monotonic() - started) * 1000);
    if (status !== 200) throw new Error(`an acquire was answered ${status} ${body}`);
    return JSON.parse(body) as Lease;
  }

  async release({ releasePath }: Side, line: Line, { session_id, lease_id }: Lease): Promise<void> {
    const asked = JSON.stringify({ session_id, lease_id });
    const started = systemClock.monotonic();
    const { status, body } = await line.post(releasePath, asked);
    this.releases.push((systemClock.monotonic() - started) * 1000);
    if (status !== 204) throw new Error(`a release was answered ${status} ${body}`);
  }

  sample(tookMs: number): Sample {
    return {
      acquires: this.acquires,
      releases: this.releases,
      cyclesPerSecond: (this.acquires.length / tookMs) * 1000,
    };
  }
}

/** Each client acquires and releases in a row, without a pause, for so long. */
export async function runCycles(side: Side, forMs: number): Promise<Sample> {
  const times = new Times();
  const started = systemClock.monotonic();
  const endsAt = started + forMs;
  await Promise.all(
    side.lines.map(async (line) => {
      while (systemClock.monotonic() < endsAt)
        await times.release(side, line, await times.acquire(side, line));
    }),
  );
  return times.sample(systemClock.monotonic() - started);
}

/** This pause is for what a visit has left to be done on either side. */
const calmMs = 5;
const visitedFactor = 3;

/**
 * Runs in steps: every client releases and acquires again at once, which is timed, so that what a release
 * leaves to be done falls into the time; then every lease is visited, which is not timed.
 */
export async function runSteps(
  side: Side,
  forMs: number,
  visit: (lease: Lease) => Promise<void>,
): Promise<Sample> {
  const times = new Times();
  const unwatched = new Times();
  let leases = await Promise.all(side.lines.map((line) => unwatched.acquire(side, line)));
  let tookMs = 0;
  // The visits may take longer than what they are between.
  const endsAt = systemClock.monotonic() + visitedFactor * forMs;
  while (tookMs < forMs && systemClock.monotonic() < endsAt) {
    await Promise.all(leases.map(visit));
    await pause(systemClock, calmMs);
    const started = systemClock.monotonic();
    const held = leases;
    leases = await Promise.all(
      side.lines.map(async (line, place) => {
        const lease = held[place];
        if (lease) await times.release(side, line, lease);
        return await times.acquire(side, line);
      }),
    );
    tookMs += systemClock.monotonic() - started;
  }
  await Promise.all(
    leases.map((lease, place) => side.lines[place] && unwatched.release(side, side.lines[place], lease)),
  );
  return times.sample(tookMs);
}
