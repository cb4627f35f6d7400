import type { Redis } from "ioredis";
import { pause, systemClock } from "../../src/base/clock.js";
import { startRedis } from "../support/store/redis.js";
import { until } from "./support/daemon.js";
import { Line } from "./support/line.js";
import type { Bar, Report } from "./support/report.js";
import { apiKey, startDeployment } from "./rest/fleet-start.js";
import { measure, type Reading } from "./rest/meter.js";
import {
  drainChannel,
  fewPools,
  leaseCount,
  manyPools,
  nodeCount,
  type Shape,
  tombstoneCount,
} from "./rest/sizes.js";
import { writeTombstones } from "./rest/tombstones.js";
import { times } from "./support/runs.js";

const most = { busyPercent: 2, sentPerSecond: 2_000_000 } as const;
const fillLimitMs = 900_000;
const settleMs = 30_000;
/** A draining node hands its idle browsers over for 30 s (node/drain/drain.ts). */
const handOverMs = 45_000;
const looksEveryMs = 1000;

interface Row {
  readonly what: string;
  readonly reading: Reading;
  readonly hasBar: boolean;
}
interface Bench {
  readonly redis: Redis;
  readonly line: Line;
  readonly forMs: number;
  readonly shape: Shape;
  readonly names: readonly string[];
  /** Sessions that are held, each with its pool. */
  readonly held: { readonly session: string; readonly pool: string }[];
}

/** What a fleet asks of Redis while nobody asks anything of the fleet. */
export async function benchRest({ forMs }: { forMs: number }): Promise<Report> {
  return report([...(await measureShape(fewPools, forMs)), ...(await measureShape(manyPools, forMs))]);
}

async function measureShape(shape: Shape, forMs: number): Promise<Row[]> {
  const server = await startRedis();
  const redis = server.client();
  const names = times(shape.pools).map((place) => `rest-${place}`);
  try {
    const deployment = await startDeployment(server.url);
    const line = await Line.open(deployment.origin, apiKey);
    try {
      const rows = await measureAll({ redis, line, forMs, shape, names, held: [] });
      return rows.map((row) => ({
        ...row,
        hasBar: row.hasBar && shape.hasGoal,
        what: `${shape.pools} pools of ${shape.size}: ${row.what}`,
      }));
    } finally {
      line.close();
      await deployment.stop();
    }
  } finally {
    redis.disconnect();
    await server.stop();
  }
}

async function measureAll(bench: Bench): Promise<Row[]> {
  const { redis, forMs, shape, names } = bench;
  await fill(bench);
  const rows: Row[] = [];
  const add = async (
    what: string,
    hasBar: boolean,
    meanwhile?: (until: AbortSignal) => Promise<void>,
  ): Promise<void> => void rows.push({ what, hasBar, reading: await measure(redis, forMs, meanwhile) });
  await add("nothing happens", true);
  for (const pool of names)
    await ask(bench, `PATCH /browser_pools/${pool}`, { viewport: { width: 1024, height: 768 } });
  await add("the same, every browser stale", true);
  await resize(bench, shape.sizeBeyondCapacity);
  await pause(systemClock, settleMs);
  await add("every pool short of browsers, no node with room", true);
  await resize(bench, shape.size);
  await pause(systemClock, settleMs);
  await add("each second one session's network changes", true, (over) =>
    everyLook(over, (count) => changeNetwork(bench, count)),
  );
  await writeTombstones(redis, tombstoneCount);
  await add("/metrics, GET /browsers, GET of an unknown session each second", false, (over) =>
    everyLook(over, () => look(bench)),
  );
  await redis.publish(drainChannel, await nodeOfLease(bench));
  await pause(systemClock, handOverMs);
  await add("one node drains, its leases held", true);
  return rows;
}

async function resize(bench: Bench, size: number): Promise<void> {
  for (const pool of bench.names) await ask(bench, `PATCH /browser_pools/${pool}`, { size });
}

async function fill(bench: Bench): Promise<void> {
  const {
    names,
    shape: { size },
  } = bench;
  for (const name of names)
    await ask(bench, "POST /browser_pools", { name, size, headless: true, timeout_seconds: 7200 });
  for (const name of names) {
    await until(
      `all browsers of ${name} idle`,
      async () => {
        const { available_count: count } = await ask<{ available_count: number }>(
          bench,
          `GET /browser_pools/${name}`,
        );
        return count === size;
      },
      { everyMs: looksEveryMs, limitMs: fillLimitMs },
    );
  }
  for (const place of times(leaseCount)) {
    const pool = names[place % names.length] ?? "";
    const { session_id: session } = await ask<{ session_id: string }>(
      bench,
      `POST /browser_pools/${pool}/acquire`,
      {},
    );
    bench.held.push({ session, pool });
  }
}

async function everyLook(over: AbortSignal, act: (count: number) => Promise<void>): Promise<void> {
  for (let count = 0; !over.aborted; count += 1) {
    await act(count);
    await pause(systemClock, looksEveryMs, over);
  }
}

/** Whether it is in force in time is not what is measured. */
async function changeNetwork({ line, held }: Bench, count: number): Promise<void> {
  const { session } = held[count % held.length] ?? { session: "" };
  await line.ask(
    "PATCH",
    `/browsers/${session}`,
    JSON.stringify({ network: { allowed_hosts: [`host-${count}.example`] } }),
  );
}

async function look({ line }: Bench): Promise<void> {
  for (const path of [
    "/metrics",
    "/browsers?limit=20",
    "/browsers?limit=20&status=all",
    "/browsers/nobody-has-this-name?include_deleted=true",
  ])
    await line.get(path);
}

/** The node of a browser that is held. */
async function nodeOfLease(bench: Bench): Promise<string> {
  const [{ session, pool } = { session: "", pool: "" }] = bench.held;
  const browsers = await ask<readonly { session_id: string; node: string }[]>(
    bench,
    `GET /browser_pools/${pool}/browsers`,
  );
  return browsers.find(({ session_id }) => session_id === session)?.node ?? "";
}

async function ask<Answer>(
  { line }: Bench,
  what: `${"GET" | "POST" | "PATCH"} /${string}`,
  body?: object,
): Promise<Answer> {
  const [method = "", path = ""] = what.split(" ");
  const { status, body: text } = await line.ask(method, path, body ? JSON.stringify(body) : "");
  if (status >= 300) throw new Error(`${what} was answered ${status} ${text}`);
  return JSON.parse(text) as Answer;
}

const megabytes = (bytes: number): string => (bytes / 1e6).toFixed(2);

function report(rows: readonly Row[]): Report {
  return {
    title: "The store at rest",
    method: [
      `${nodeCount} nodes (simulated: all that a node asks of Redis, without Chromium), ${leaseCount} leases held, one control.`,
      'Redis\'s own count of its processor time, without an append-only file; "longest" is the longest single command or script.',
    ],
    head: ["", "busy %", "sent MB/s", "received MB/s", "commands/s", "longest ms", "most (per second)"],
    rows: rows.map(({ what, reading }) => [
      what,
      reading.busyPercent.toFixed(2),
      megabytes(reading.sentPerSecond),
      megabytes(reading.receivedPerSecond),
      reading.commandsPerSecond.toFixed(0),
      reading.longestMs.toFixed(1),
      reading.most,
    ]),
    bars: rows.filter(({ hasBar }) => hasBar).map(barOf),
  };
}

function barOf({ what, reading: { busyPercent, sentPerSecond } }: Row): Bar {
  return {
    what: `${what}: Redis at most ${most.busyPercent} % busy, ${megabytes(most.sentPerSecond)} MB/s sent`,
    is: `${busyPercent.toFixed(2)} %, ${megabytes(sentPerSecond)} MB/s`,
    isMet: busyPercent <= most.busyPercent && sentPerSecond <= most.sentPerSecond,
  };
}
