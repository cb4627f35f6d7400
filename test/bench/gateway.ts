import { mkdtemp, rm } from "node:fs/promises";
import { once } from "node:events";
import { join } from "node:path";
import { WebSocket } from "ws";
import { pause, systemClock } from "../../src/base/clock.js";
import { wholeOf } from "../../src/browser/cdp/frame.js";
import { newScratchDirectory } from "../support/killed-runs.js";
import { bareCommand, spawnBare } from "./support/bare.js";
import { startDaemon } from "./support/daemon.js";
import { median } from "./support/figures.js";
import type { Lease } from "./support/load.js";
import { findPort, switchesWithPort } from "./support/port.js";
import type { Report } from "./support/report.js";
import { inRuns, inTurn, times } from "./support/runs.js";

const calls = 2000;
const barUs = 100;
const barRatio = 1.5;
const engine = "headless-shell";
const pool = "bench-gateway";

/** A way to one page of one browser: one command after its reply. */
export interface PageLink {
  send(text: string): void;
  onMessage(listener: (text: string) => void): void;
  close(): Promise<void>;
}
const names = ["gateway", "direct", "pipe"] as const;
type Name = (typeof names)[number];

/** One CDP round trip through the daemon, on a DevTools port, and on the pipe itself. */
export async function benchGateway({ runs }: { runs: number }): Promise<Report> {
  const daemon = await startDaemon();
  const scratch = newScratchDirectory();
  const links: Partial<Record<Name, PageLink>> = {};
  try {
    await daemon.createPool({ name: pool, size: 1, engine });
    const line = await daemon.open();
    const lease = JSON.parse((await line.post(`/browser_pools/${pool}/acquire`, "{}")).body) as Lease;
    line.close();
    links.gateway = await openSocket(lease.cdp_ws_url);
    links.direct = await openDirect(scratch);
    links.pipe = await openBare(scratch);
    return report(await measure(links as Record<Name, PageLink>, runs));
  } finally {
    for (const way of Object.values(links)) await way.close();
    await daemon.stop();
    await rm(scratch, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
  }
}

export async function openSocket(url: string): Promise<PageLink> {
  const socket = new WebSocket(url, { perMessageDeflate: false });
  await once(socket, "open");
  return {
    send: (text) => socket.send(text),
    onMessage: (listener) => void socket.on("message", (data: Buffer) => listener(data.toString())),
    close: async () => socket.terminate(),
  };
}

async function openDirect(scratch: string): Promise<PageLink> {
  const profile = await mkdtemp(join(scratch, "direct-"));
  const { executable, switches } = await bareCommand(engine, profile);
  const child = await spawnBare(executable, switchesWithPort(switches));
  const way = await openSocket(await findPort(profile));
  return {
    ...way,
    async close() {
      await way.close();
      await child.end();
    },
  };
}

async function openBare(scratch: string): Promise<PageLink> {
  const { executable, switches } = await bareCommand(engine, await mkdtemp(join(scratch, "pipe-")));
  const { pipe, end } = await spawnBare(executable, switches);
  return {
    send: (text) => pipe.send(text),
    onMessage: (listener) => void pipe.onFrame((frame) => listener(wholeOf(frame).toString())),
    close: end,
  };
}

interface Figures {
  /** One after the other, in µs. */
  readonly p50: number;
  /** Commands a second with 32 outstanding. */
  readonly pipelined: number;
}

async function measure(links: Record<Name, PageLink>, runs: number): Promise<Record<Name, Figures[]>> {
  const asks = await inTurn(names, (name) => openPage(links[name]));
  const found = await inRuns(runs, () =>
    inTurn(asks, async (ask) => ({ p50: await sequential(ask), pipelined: await pipelined(ask) })),
  );
  const of = (name: Name): Figures[] => found.flatMap((run) => run[names.indexOf(name)] ?? []);
  return { gateway: of("gateway"), direct: of("direct"), pipe: of("pipe") };
}

interface Reply {
  readonly id?: number;
  readonly result?: Record<string, unknown>;
}

/** Attaches to the open page; the result evaluates 1+1 on it. */
export async function openPage(way: PageLink): Promise<() => Promise<void>> {
  const waiting = new Map<number, (result: Record<string, unknown>) => void>();
  let last = 0;
  way.onMessage((text) => {
    const { id = 0, result = {} } = JSON.parse(text) as Reply;
    waiting.get(id)?.(result);
    waiting.delete(id);
  });
  const send = (method: string, params: object, sessionId?: string): Promise<Record<string, unknown>> =>
    new Promise((resolve) => {
      last += 1;
      waiting.set(last, resolve);
      way.send(JSON.stringify({ id: last, method, params, sessionId }));
    });
  const findPage = async (): Promise<string> => {
    const { targetInfos } = await send("Target.getTargets", {});
    const page = (targetInfos as { targetId: string; type: string }[]).find(({ type }) => type === "page");
    if (page) return page.targetId;
    await pause(systemClock, 20);
    return await findPage();
  };
  const { sessionId } = await send("Target.attachToTarget", { targetId: await findPage(), flatten: true });
  return async () => void (await send("Runtime.evaluate", { expression: "1+1" }, String(sessionId)));
}

async function sequential(ask: () => Promise<void>): Promise<number> {
  const tookUs: number[] = [];
  for (let call = 0; call < calls; call += 1) {
    const started = systemClock.monotonic();
    await ask();
    tookUs.push((systemClock.monotonic() - started) * 1000);
  }
  return median(tookUs);
}

async function pipelined(ask: () => Promise<void>): Promise<number> {
  const started = systemClock.monotonic();
  let left = calls;
  await Promise.all(
    times(32).map(async () => {
      for (; left > 0; left -= 1) await ask();
    }),
  );
  return (calls / (systemClock.monotonic() - started)) * 1000;
}

function report(found: Record<Name, Figures[]>): Report {
  const middle = (name: Name, figure: keyof Figures): number =>
    median(found[name].map((figures) => figures[figure]));
  const more = median(found.gateway.map(({ p50 }, run) => p50 - (found.direct[run]?.p50 ?? Number.NaN)));
  const ratio = median(found.gateway.map(({ p50 }, run) => p50 / (found.direct[run]?.p50 ?? Number.NaN)));
  const isMet = more <= barUs || ratio <= barRatio;
  const whole = (value: number): string => value.toFixed(0);
  return {
    title: "CDP round trip",
    method: [
      "chromium-headless-shell; Runtime.evaluate of 1+1 on a page, one after the other (p50 in µs) and with 32 outstanding (commands a second).",
      "gateway: through the daemon's WebSocket; direct: a WebSocket on Chromium's own DevTools port, which the bar is measured against; pipe: no relay, no socket.",
    ],
    head: ["", ...names, "gateway - direct", "gateway / direct", "bar"],
    rows: [
      [
        "p50 µs",
        ...names.map((name) => whole(middle(name, "p50"))),
        whole(more),
        ratio.toFixed(2),
        isMet ? "met" : "missed",
      ],
      ["commands/s", ...names.map((name) => whole(middle(name, "pipelined"))), "", "", ""],
    ],
    bars: [
      {
        what: `gateway: at most ${barUs} µs more than direct at p50, or ${barRatio} times`,
        is: `${whole(more)} µs, ${ratio.toFixed(2)} times`,
        isMet,
      },
    ],
  };
}
