import { once } from "node:events";
import { WebSocket } from "ws";
import { costOf } from "./support/cpu.js";
import { type Daemon, startDaemon } from "./support/daemon.js";
import { median } from "./support/figures.js";
import { flightCost } from "./support/flight-cost.js";
import type { Line } from "./support/line.js";
import type { Lease } from "./support/load.js";
import type { Report } from "./support/report.js";
import { inRuns, times } from "./support/runs.js";

/** In one piece; pieces without and with telemetry follow each other, so that what drifts meets both. */
const commands = 5000;
const pieces = 4;
const outstanding = 32;
const bar = 1.3;
/** As a part of what a command costs without telemetry. */
const flightBar = 0.01;
const engine = "headless-shell";
const pool = "bench-telemetry";
const telemetry = { off: { enabled: false }, on: { browser: { control: { enabled: true } } } } as const;
const names = ["off", "on"] as const;
type Name = (typeof names)[number];

/** Per command, in µs. */
interface Cost {
  readonly daemon: number;
  readonly redis: number;
}
type Costs = Readonly<Record<Name, Cost>>;

/** The processor time of a command that is reported, and of the same where nothing is captured. */
export async function benchTelemetry({ runs }: { runs: number }): Promise<Report> {
  const daemon = await startDaemon();
  try {
    await daemon.createPool({ name: pool, size: 1, engine });
    const line = await daemon.open();
    const { session_id, cdp_ws_url } = await acquire(line);
    const socket = new WebSocket(cdp_ws_url, { perMessageDeflate: false });
    await once(socket, "open");
    const set = (name: Name): Promise<void> => setTelemetry(line, session_id, name);
    const found = await inRuns(runs, () => measure(daemon, { set, work: () => sendAll(socket) }));
    socket.terminate();
    line.close();
    return report(found);
  } finally {
    await daemon.stop();
  }
}

/** One client of one browser: what it costs to read Chromium's answers depends on how many come at once. */
interface Bed {
  set(name: Name): Promise<void>;
  work(): Promise<void>;
}

async function measure(daemon: Daemon, { set, work }: Bed): Promise<Costs> {
  const sums = { off: { daemon: 0, redis: 0 }, on: { daemon: 0, redis: 0 } };
  for (const piece of times(pieces))
    for (const name of piece % 2 === 0 ? names : names.toReversed()) {
      await set(name);
      const { used } = await costOf(daemon, work, () => commands * pieces);
      sums[name].daemon += used.daemon;
      sums[name].redis += used.redis;
    }
  return sums;
}

async function acquire(line: Line): Promise<Lease> {
  const { status, body } = await line.post(`/browser_pools/${pool}/acquire`, "{}");
  if (status !== 200) throw new Error(`an acquire was answered ${status} ${body}`);
  return JSON.parse(body) as Lease;
}

async function setTelemetry(line: Line, session: string, name: Name): Promise<void> {
  const { status, body } = await line.ask(
    "PATCH",
    `/browsers/${session}`,
    JSON.stringify({ telemetry: telemetry[name] }),
  );
  if (status !== 200) throw new Error(`a change was answered ${status} ${body}`);
}

/** Commands that are all reported, and that Chromium answers at once because there is no such target. */
function sendAll(socket: WebSocket): Promise<void> {
  return new Promise((resolve, reject) => {
    let [sent, answered] = [0, 0];
    const send = (): void => {
      sent += 1;
      const params = { targetId: "0123456789ABCDEF0123456789ABCDEF" };
      socket.send(JSON.stringify({ id: sent, method: "Target.activateTarget", params }));
    };
    const take = (): void => {
      answered += 1;
      if (sent < commands) send();
      if (answered < commands) return;
      socket.off("message", take).off("close", fail);
      resolve();
    };
    const fail = (): void => reject(new Error("the client was cut"));
    socket.on("message", take).once("close", fail);
    for (let place = 0; place < outstanding; place += 1) send();
  });
}

function report(found: readonly Costs[]): Report {
  const middle = (name: Name, part: keyof Cost): string =>
    median(found.map((costs) => costs[name][part])).toFixed(1);
  const ratio = median(found.map(({ on, off }) => on.daemon / off.daemon));
  const isMet = ratio <= bar;
  const flight = flightCost();
  const share = flight / median(found.map(({ off }) => off.daemon));
  return {
    title: "Telemetry of commands",
    method: [
      `chromium-headless-shell; ${pieces} times ${commands} commands of one client, ${outstanding} outstanding, each of them reported (Target.activateTarget of a target that is not there).`,
      "Processor time of the daemon and its Redis for each command and its answer, in µs: without telemetry, and with `control` on.",
      `The flight recorder, which is always on, by itself: ${flight.toFixed(3)} µs a command, with it and without it in turns.`,
    ],
    head: ["", "daemon off", "daemon on", "on / off", "redis off", "redis on", "bar"],
    rows: [
      [
        "µs a command",
        middle("off", "daemon"),
        middle("on", "daemon"),
        ratio.toFixed(2),
        middle("off", "redis"),
        middle("on", "redis"),
        isMet ? "met" : "missed",
      ],
    ],
    bars: [
      {
        what: `telemetry: at most ${bar} times the processor time of a command`,
        is: `${ratio.toFixed(2)} times`,
        isMet,
      },
      {
        what: `flight recorder: at most ${flightBar} of the processor time of a command`,
        is: share.toFixed(4),
        isMet: share <= flightBar,
      },
    ],
  };
}
