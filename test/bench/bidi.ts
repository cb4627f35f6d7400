import { once } from "node:events";
import { readFileSync } from "node:fs";
import { WebSocket } from "ws";
import { type Millis, systemClock } from "../../src/base/clock.js";
import { mappersOf } from "../support/gateway/mappers.js";
import { type Daemon, startDaemon } from "./support/daemon.js";
import { median } from "./support/figures.js";
import type { Lease } from "./support/load.js";
import type { Report } from "./support/report.js";
import { inRuns, inTurn } from "./support/runs.js";

const protocols = ["cdp", "bidi"] as const;
type Protocol = (typeof protocols)[number];
type Urls = Lease & { readonly webdriver_ws_url: string };
const first = {
  cdp: { method: "Browser.getVersion" },
  bidi: { method: "session.new", params: { capabilities: {} } },
} as const;
const pool = "bench-bidi";
const [kibibytesPerMiB, msPerTick] = [1024, 10];

interface Cost {
  readonly readyMs: Millis;
  readonly processorMs: Millis;
  readonly ownMiB: number;
  readonly shareMiB: number;
}

/** What a client of WebDriver BiDi costs beside one of CDP, of the same browser. */
export async function benchBidi({ runs }: { runs: number }): Promise<Report> {
  const daemon = await startDaemon();
  try {
    await daemon.createPool({ name: pool, size: 1, engine: "headless-shell" });
    const line = await daemon.open();
    const lease = JSON.parse((await line.post(`/browser_pools/${pool}/acquire`, "{}")).body) as Urls;
    line.close();
    return report(
      await inRuns(runs, () => inTurn(protocols, (protocol) => measure(daemon, lease, protocol))),
    );
  } finally {
    await daemon.stop();
  }
}

async function measure({ pid }: Daemon, lease: Urls, protocol: Protocol): Promise<[Protocol, Cost]> {
  const startedAt = systemClock.monotonic();
  const url = protocol === "cdp" ? lease.cdp_ws_url : lease.webdriver_ws_url;
  const socket = new WebSocket(url, { perMessageDeflate: false });
  await once(socket, "open");
  socket.send(JSON.stringify({ id: 1, ...first[protocol] }));
  await once(socket, "message");
  const readyMs = systemClock.monotonic() - startedAt;
  const cost = { readyMs, ...mapperOf(pid) };
  socket.close();
  await once(socket, "close");
  return [protocol, cost];
}

/** What the mapper's process among those of the daemon has used; nothing where there is none. */
function mapperOf(daemon: number): Omit<Cost, "readyMs"> {
  const [mapper] = mappersOf(daemon);
  if (mapper === undefined) return { processorMs: 0, ownMiB: 0, shareMiB: 0 };
  const memory = readFileSync(`/proc/${mapper}/smaps_rollup`, "utf8");
  const mebibytes = (name: string): number =>
    Number(new RegExp(`^${name}: +(\\d+)`, "m").exec(memory)?.[1]) / kibibytesPerMiB;
  const [, user = "", system = ""] =
    /\) (?:\S+ ){11}(\d+) (\d+)/.exec(readFileSync(`/proc/${mapper}/stat`, "utf8")) ?? [];
  return {
    processorMs: (Number(user) + Number(system)) * msPerTick,
    ownMiB: mebibytes("Private_Dirty"),
    shareMiB: mebibytes("Pss"),
  };
}

function report(found: readonly (readonly [Protocol, Cost][])[]): Report {
  const middle = (protocol: Protocol, part: keyof Cost): string =>
    median(
      found.flatMap((run) => run.filter(([name]) => name === protocol).map(([, cost]) => cost[part])),
    ).toFixed(0);
  return {
    title: "A client of WebDriver BiDi",
    method: [
      "One pooled headless-shell; from the connection to the first answer (CDP: Browser.getVersion, BiDi: session.new).",
      "Processor time and memory of the mapper's process at that moment: what is its own (Private_Dirty), and with its share of what others have too (Pss).",
    ],
    head: ["", "ready ms", "processor ms", "own MiB", "Pss MiB"],
    rows: protocols.map((protocol) => [
      protocol,
      ...(["readyMs", "processorMs", "ownMiB", "shareMiB"] as const).map((part) => middle(protocol, part)),
    ]),
    bars: [],
  };
}
