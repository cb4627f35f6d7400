import { join } from "node:path";
import { pause, systemClock } from "../../src/base/clock.js";
import { type CpuGroup, goFirst, openIdleGroup, processSeconds } from "./support/cpu.js";
import { type Daemon, startDaemon } from "./support/daemon.js";
import { median, quantile } from "./support/figures.js";
import { attacks } from "./floods/attacks.js";
import { openPage, openSocket, type PageLink } from "./gateway.js";
import type { Line } from "./support/line.js";
import type { Lease } from "./support/load.js";
import { startHelper } from "./support/processes.js";
import type { Report } from "./support/report.js";
import { inRuns, inTurn } from "./support/runs.js";

const sampleMs = 2000;
const paceMs = 2;
const bar = 2;
const engine = "headless-shell";
const pools = { victim: "bench-victim", acquired: "bench-acquired", attacker: "bench-attacker" } as const;

/** `REMUDA_BENCH_ATTACKS=<name>,<name>` takes these alone. */
const asked = process.env["REMUDA_BENCH_ATTACKS"]?.split(",");
/**
 * `REMUDA_BENCH_APART=1` has another daemon of the same machine attacked: what its victim loses, no worker or
 * process of one daemon could spare it.
 */
const isApart = process.env["REMUDA_BENCH_APART"] === "1";
/** `REMUDA_BENCH_SCRATCH=<directory>` has browsers keep their files there, on a disk for one. */
const scratch = process.env["REMUDA_BENCH_SCRATCH"];
/** `REMUDA_BENCH_ISOLATION=<egress.isolation>` has browsers held to their proxies that way. */
const isolation = process.env["REMUDA_BENCH_ISOLATION"];
const start = (): Promise<Daemon> =>
  startDaemon({
    sections: {
      node: { memory_bytes: 2 ** 40, ...(scratch !== undefined && { scratch_dir: scratch }) },
      ...(isolation !== undefined && { egress: { private_hosts: ["127.0.0.1"], isolation } }),
    },
  });
const chosen = Object.keys(attacks).filter((name) => asked?.includes(name) ?? true);

/** What another tenant does: commands on a page of its own, and acquires. */
interface Victim {
  evaluate(): Promise<void>;
  cycle(): Promise<number>;
}

/** p99, in ms. */
interface Figures {
  readonly command: number;
  readonly acquire: number;
}
interface Pair {
  readonly name: string;
  /** p99 of how late the daemon's event loop was under the attack, in ms. */
  readonly loop: number;
  /** What the attacker's client used meanwhile, in percent of a core. */
  readonly client: number;
  readonly calm: Figures;
  readonly attacked: Figures;
}

/** How much slower one tenant is served while another attacks; `attacks.ts` has the attacks. */
export async function benchFloods({ runs }: { runs: number }): Promise<Report> {
  const daemon = await start();
  const ends: (() => unknown)[] = [];
  try {
    await daemon.createPool({ name: pools.victim, size: 1, engine });
    await daemon.createPool({ name: pools.acquired, size: 2, engine });
    const attacked = isApart ? await start() : daemon;
    if (attacked !== daemon) ends.push(() => attacked.stop());
    const group = await openIdleGroup("client");
    // Who measures stands for a machine of its own. What it starts from now on goes first with it, but for
    // what has a group.
    if (group) ends.push(() => group.close(), await goFirst());
    await attacked.createPool({ name: pools.attacker, size: 1, engine, reset_on_release: "relaunch" });
    const line = await daemon.open();
    ends.push(() => line.close());
    const way = await openSocket((await acquire(line, pools.victim)).cdp_ws_url);
    ends.push(() => way.close());
    const victim = await makeVictim(line, way);
    const bed = { attacked, line, victim, ...(group && { group }) };
    const found = await inRuns(runs, () => inTurn(chosen, (name) => measure(bed, name)));
    return report(found.flat());
  } finally {
    for (const end of ends.toReversed()) await end();
    await daemon.stop();
  }
}

async function acquire(line: Line, pool: string): Promise<Lease> {
  const { status, body } = await line.post(`/browser_pools/${pool}/acquire`, "{}");
  if (status !== 200) throw new Error(`an acquire was answered ${status} ${body}`);
  return JSON.parse(body) as Lease;
}

async function release(line: Line, pool: string, { session_id, lease_id }: Lease): Promise<void> {
  await line.post(`/browser_pools/${pool}/release`, JSON.stringify({ session_id, lease_id }));
}

async function makeVictim(line: Line, way: PageLink): Promise<Victim> {
  return {
    evaluate: await openPage(way),
    async cycle() {
      const started = systemClock.monotonic();
      const lease = await acquire(line, pools.acquired);
      const tookMs = systemClock.monotonic() - started;
      await release(line, pools.acquired, lease);
      return tookMs;
    },
  };
}

interface Bed {
  /** The daemon whose browser the attacker has. */
  readonly attacked: Daemon;
  /** To the daemon of the victim. */
  readonly line: Line;
  readonly victim: Victim;
  /** For the attacker's client. */
  readonly group?: CpuGroup;
}

async function measure({ attacked: target, line: victims, victim, group }: Bed, name: string): Promise<Pair> {
  const calm = await sample(victim);
  const line = await target.open();
  const lease = await acquire(line, pools.attacker);
  const attacker = await startHelper({
    isIdle: true,
    ...(group && { group }),
    file: join(import.meta.dirname, "floods/attacker.js"),
    environment: { REMUDA_BENCH_ATTACK: name, REMUDA_BENCH_CDP_URL: lease.cdp_ws_url },
    find: (said) => (said === "attacking" ? said : undefined),
  });
  try {
    await loopDelayMs(victims);
    const before = await processSeconds(attacker.pid);
    const attacked = await sample(victim);
    const client = ((await processSeconds(attacker.pid)) - before) / (sampleMs / 100_000);
    return { name, calm, attacked, client, loop: await loopDelayMs(victims) };
  } finally {
    await attacker.stop();
    await release(line, pools.attacker, lease);
    line.close();
    await target.allIdle(pools.attacker);
  }
}

/** p99 since it was last asked. */
async function loopDelayMs(line: Line): Promise<number> {
  const { body } = await line.get("/metrics");
  return Number(/^remuda_event_loop_delay_seconds\{quantile="0.99"\} (\S+)$/m.exec(body)?.[1]) * 1000;
}

/** Both at once, each with a pause after each. */
async function sample(victim: Victim): Promise<Figures> {
  const [commands, acquires] = await Promise.all([
    series(async () => {
      const started = systemClock.monotonic();
      await victim.evaluate();
      return systemClock.monotonic() - started;
    }),
    series(() => victim.cycle()),
  ]);
  return { command: quantile(commands, 0.99), acquire: quantile(acquires, 0.99) };
}

async function series(measureOne: () => Promise<number>): Promise<number[]> {
  const found: number[] = [];
  for (const endsAt = systemClock.monotonic() + sampleMs; systemClock.monotonic() < endsAt;) {
    found.push(await measureOne());
    await pause(systemClock, paceMs);
  }
  return found;
}

function report(found: readonly Pair[]): Report {
  const names = [...new Set(found.map(({ name }) => name))];
  const of = (name: string, figure: (pair: Pair) => number): number =>
    median(found.filter((pair) => pair.name === name).map(figure));
  const kinds = ["command", "acquire"] as const;
  const ratio = (name: string, kind: keyof Figures): number =>
    of(name, ({ calm, attacked }) => attacked[kind] / calm[kind]);
  const cells = (name: string, kind: keyof Figures): string[] => [
    of(name, ({ calm }) => calm[kind]).toFixed(1),
    of(name, ({ attacked }) => attacked[kind]).toFixed(1),
    ratio(name, kind).toFixed(2),
  ];
  return {
    title: "Floods: what one tenant feels of another's attack, p99 in ms",
    method: [
      `${engine}; a command (Runtime.evaluate of 1+1) and an acquire about every ${paceMs} ms for ${sampleMs / 1000} s, without the attack and then with it.`,
      `The attacker has a browser of ${isApart ? "another daemon of the same machine" : "the same daemon"}. Its client stands for another machine: it runs in a cgroup of the scheduler's idle class, where that can be made. Who measures is in a cgroup of the highest weight, where that can be made.`,
      "Bounded are processes, memory and what is stored; how fast a browser writes is not, and only where scratch lies in memory does that meet no disk (docs/isolation.md, Limits).",
      "Event loop: how late the daemon came to what waited for it under the attack. What a command waits beyond that, it waits for processors.",
      "Client: what the attacker's client used of a core. It gets what is left, so beside other work it may attack with less than it has on a machine of its own.",
    ],
    head: ["attack", "command", "attacked", "times", "acquire", "attacked", "times", "event loop", "client"],
    rows: names.map((name) => [
      name,
      ...kinds.flatMap((kind) => cells(name, kind)),
      of(name, ({ loop }) => loop).toFixed(1),
      `${of(name, ({ client }) => client).toFixed(0)} %`,
    ]),
    bars: names.flatMap((name) =>
      kinds.map((kind) => ({
        what: `${name}: p99 of another tenant's ${kind} at most ${bar} times`,
        is: `${ratio(name, kind).toFixed(2)} times`,
        isMet: ratio(name, kind) <= bar,
      })),
    ),
  };
}
