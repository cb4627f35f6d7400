import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { expect, onTestFinished } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import type { DaemonClient, Lease } from "../../support/daemon/daemon.js";
import type { DaemonProcess } from "../../support/daemon/daemon-process.js";
import { connectRaw, type RawCdp } from "../../support/gateway/raw-cdp.js";
import { gapsIn, StreamFollower, wrongNumbers } from "../../support/telemetry/stream-follower.js";
import { useFaultBed } from "../../support/faults/bed.js";
import { fault, startWatch } from "../../support/faults/fault.js";

const bed = useFaultBed();
const readers = 50;
const deafMs = 60_000;
const quietMs = 15_000;
/**
 * A reader has a page of 100 events in the making and one frame on its way, some 100 KiB; the rest is what
 * the heap of a daemon under a flood swings by itself.
 */
const mostMiBPerReader = 2;
/** What is slower than this hangs, however busy the machine is. */
const hungMs = 15_000;
const settings = {
  telemetry: { max_session_streams: readers + 1, max_streams: readers + 1, max_session_bytes: 2 ** 28 },
};

/** A reader that asks for the stream and never reads; resolves when it is answered. */
async function openDeaf({ url, apiKey }: DaemonClient, session: string): Promise<Socket> {
  const { hostname, port, host } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  socket.on("error", () => {});
  socket.write(
    `GET /browsers/${session}/telemetry/stream?replay=all HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${apiKey}\r\n\r\n`,
  );
  await once(socket, "readable");
  return socket;
}

/** In MiB. */
const memoryOf = ({ pid }: { readonly pid: number }): number =>
  Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024);

interface Flooded {
  readonly daemon: DaemonProcess;
  /** Drives the session that is read. */
  readonly flood: RawCdp;
  /** Drives a session that nobody reads. */
  readonly other: RawCdp;
}

/** What a stretch of the flood has shown; times in ms, memory in MiB. */
interface Measured {
  commands: number;
  readonly commandMs: number[];
  readonly acquireMs: number[];
  mostMiB: number;
}

const sendMany = (client: RawCdp): Promise<unknown> =>
  Promise.all(
    Array.from({ length: 100 }, () => client.send("Target.activateTarget", { targetId: "there-is-none" })),
  );

/**
 * Floods one session for so long, and meanwhile drives another and acquires and releases, time after time.
 */
async function measure({ daemon, flood, other }: Flooded, lengthMs: number): Promise<Measured> {
  const measured: Measured = { commands: 0, commandMs: [], acquireMs: [], mostMiB: 0 };
  const watch = startWatch();
  const repeat = async (work: () => Promise<void>): Promise<void> => {
    while (watch.since() < lengthMs) await work();
  };
  const flooding = repeat(async () => {
    await sendMany(flood);
    measured.commands += 100;
    measured.mostMiB = Math.max(measured.mostMiB, memoryOf(daemon));
  });
  const driving = repeat(async () => {
    const sent = startWatch();
    await other.send("Browser.getVersion");
    measured.commandMs.push(sent.since());
  });
  const acquiring = repeat(async () => {
    const asked = startWatch();
    const { session_id } = await acquire(daemon, "spare");
    measured.acquireMs.push(asked.since());
    await daemon.call("POST /browser_pools/spare/release", { session_id });
    await daemon.poolWhen("spare", ({ available_count }) => available_count === 2);
  });
  await Promise.all([flooding, driving, acquiring]);
  return measured;
}

async function acquire(daemon: DaemonClient, pool: string): Promise<Lease> {
  const { status, body, text } = await daemon.call(`POST /browser_pools/${pool}/acquire`, {});
  expect(status, text).toBe(200);
  return body as Lease;
}

const p99 = (times: readonly number[]): string =>
  `${(times.toSorted((one, next) => one - next)[Math.floor(times.length * 0.99)] ?? NaN).toFixed(1)} ms`;

/** The stretches before and after, as one. */
const joined = (one: Measured, next: Measured): Measured => ({
  commands: one.commands + next.commands,
  commandMs: [...one.commandMs, ...next.commandMs],
  acquireMs: [...one.acquireMs, ...next.acquireMs],
  mostMiB: Math.max(one.mostMiB, next.mostMiB),
});

async function openFlooded(): Promise<Flooded & { readonly session: string }> {
  const daemon = await bed.start("all", settings);
  await daemon.makePool({ name: "told", telemetry: { enabled: true } });
  await daemon.makePool({ name: "spare", size: 3 });
  const [told, spare] = [await acquire(daemon, "told"), await acquire(daemon, "spare")];
  const [flood, other] = [await connectRaw(told.cdp_ws_url), await connectRaw(spare.cdp_ws_url)];
  return { daemon, flood, other, session: told.session_id };
}

fault(
  `telemetry: ${readers} readers of a flood read nothing for a minute, beside one that reads`,
  async (tell) => {
    const { session, ...flooded } = await openFlooded();
    const { daemon, flood, other } = flooded;
    const follower = new StreamFollower([daemon], session);
    onTestFinished(() => follower.stop());
    const before = await measure(flooded, quietMs);
    const deaf: Socket[] = [];
    onTestFinished(() => deaf.forEach((socket) => void socket.destroy()));
    for (let place = 0; place < readers; place += 1) deaf.push(await openDeaf(daemon, session));
    const beside = await measure(flooded, deafMs);
    // None was cut: each has its seat still.
    expect((await daemon.call(`GET /browsers/${session}/telemetry/stream`)).status).toBe(429);
    for (const socket of deaf) socket.destroy();
    const quiet = joined(before, await measure(flooded, quietMs));
    await flood.close();
    await other.close();
    const watch = startWatch();
    const isEnd = ({ event }: { event: { type: string } }): boolean => event.type === "cdp_disconnect";
    await until("the end", () => (follower.told.some(isEnd) ? true : undefined), 60_000);
    const recoveryMs = watch.since();
    expect([wrongNumbers(follower.told), gapsIn(follower.told)]).toEqual([[], 0]);
    // What the readers have cost may not be given back at once: what was before them is what to compare with.
    expect(beside.mostMiB - before.mostMiB).toBeLessThan(readers * mostMiBPerReader);
    expect(Math.max(...beside.commandMs, ...beside.acquireMs)).toBeLessThan(hungMs);
    tell({
      saw:
        `${beside.commands} commands told to who reads; at most ${beside.mostMiB} MiB, ${before.mostMiB} before them; ` +
        `p99 of a command ${p99(beside.commandMs)}, ${p99(quiet.commandMs)} without; ` +
        `of an acquire ${p99(beside.acquireMs)}, ${p99(quiet.acquireMs)} without`,
      recoveryMs,
    });
  },
  300_000,
);
