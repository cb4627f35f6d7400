import { systemClock } from "../../src/base/clock.js";
import { accessReport } from "./access/access-report.js";
import { writeKeys } from "./access/keys.js";
import { costOf, type ProcessorTime } from "./support/cpu.js";
import { type Daemon, startDaemon } from "./support/daemon.js";
import { makeLightChromium } from "./support/light-chromium.js";
import type { Answer, Line } from "./support/line.js";
import type { Lease } from "./support/load.js";
import type { Report } from "./support/report.js";
import { inRuns, inTurn, times } from "./support/runs.js";

/** So that no acquire waits. */
const browsersPerClient = 4;
const mostClients = 8;
const pool = "bench-access";
const manyKeys = 100_000;

/** Nothing that is asked here is refused by them, and all of it is counted. */
const guarded = {
  projects: { enabled: true },
  limits: {
    pooled_sessions: 10_000,
    concurrent_sessions: 10_000,
    creation_rate_per_minute: 1_000_000,
    requests_per_minute: 1_000_000,
  },
};

/** Nothing of what is measured: the root key is looked up nowhere, and nobody says who has asked. */
const unguarded = { audit: { enabled: false } };

/** What one client does over and over. */
type Turn = (line: Line) => Promise<void>;
/** A daemon, and the key with which it is asked. */
interface Side {
  readonly daemon: Daemon;
  readonly key?: string;
}
export interface Comparison {
  readonly what: string;
  readonly clients: number;
  /**
   * Part of the plain side's turns per second, at least. None where one request waits for the other: each
   * look-up is a round trip that nothing hides there.
   */
  readonly bar?: number;
  readonly plain: Side;
  readonly checked: Side;
  readonly turn: Turn;
}
export interface Sample {
  readonly turnsPerSecond: number;
  readonly used: ProcessorTime;
}
/** Both sides, one after the other. */
export interface Pair extends Pick<Comparison, "what" | "clients" | "bar"> {
  readonly plain: Sample;
  readonly checked: Sample;
}

/**
 * What it costs that a request is asked who it is from and what it may do, and leaves an entry in the audit
 * log, beside the root key without limits and without the log.
 */
export async function benchAccess({ runs, sampleMs }: { runs: number; sampleMs: number }): Promise<Report> {
  const fake = await makeLightChromium();
  const daemons: Daemon[] = [];
  const start = async (sections: Readonly<Record<string, unknown>>): Promise<Daemon> => {
    const daemon = await startDaemon({ executable: fake.executable, sections });
    daemons.push(daemon);
    return daemon;
  };
  try {
    const wanted = await compared({
      plain: await start(unguarded),
      checked: await start(guarded),
      single: await start({}),
      crowded: await start({}),
    });
    const found = await inRuns(runs, (run) =>
      inTurn(wanted, (each) => measure(each, { sampleMs, isSwapped: run % 2 === 1 })),
    );
    return accessReport(found.flat());
  } finally {
    for (const daemon of daemons) await daemon.stop();
    await fake.remove();
  }
}

type Daemons = Readonly<Record<"plain" | "checked" | "single" | "crowded", Daemon>>;
async function compared({ plain, checked, single, crowded }: Daemons): Promise<readonly Comparison[]> {
  const root = await checked.open();
  const { id: project } = await made<{ id: string }>(root.post("/org/projects", named("bench")));
  const ofProject = await keyOf(root, { project_id: project });
  const statements = ["create", "use", "delete"].map((action) => ({
    action: `browsers:${action}`,
    resource: `projects/${project}/*`,
  }));
  const restricted = await keyOf(root, { project_id: project, policy: { statements } });
  const size = mostClients * browsersPerClient;
  await plain.createPool({ name: pool, size });
  await checked.createPool({ name: pool, size }, await checked.open(ofProject));
  const alone = await keyOf(await single.open(), {});
  // Made first: the API makes no key beyond a bound that is lower.
  const amongMany = await keyOf(await crowded.open(), {});
  await writeKeys(crowded.redisSocket, manyKeys);
  const pooled = { plain: { daemon: plain }, checked: { daemon: checked, key: ofProject }, turn: lendTurn };
  return [
    { what: "acquire and release, a project's key", clients: mostClients, bar: 0.9, ...pooled },
    { what: "acquire and release, a project's key", clients: 1, ...pooled },
    {
      what: "POST and DELETE /browsers, a key with a policy",
      clients: 1,
      bar: 0.9,
      plain: { daemon: plain },
      checked: { daemon: checked, key: restricted },
      turn: launchTurn,
    },
    {
      what: `GET /auth/context, one of ${manyKeys.toLocaleString("en")} keys`,
      clients: mostClients,
      bar: 0.9,
      plain: { daemon: single, key: alone },
      checked: { daemon: crowded, key: amongMany },
      turn: askTurn,
    },
  ];
}

const named = (name: string): string => JSON.stringify({ name });

async function keyOf(root: Line, body: object): Promise<string> {
  const { key } = await made<{ key: string }>(
    root.post("/org/api_keys", JSON.stringify({ name: "bench", days_to_expire: 1, ...body })),
  );
  return key;
}

async function made<Thing>(answer: Promise<Answer>): Promise<Thing> {
  return JSON.parse((await expected(answer, 201)).body) as Thing;
}

async function expected(answer: Promise<Answer>, wanted: number): Promise<Answer> {
  const got = await answer;
  if (got.status !== wanted) throw new Error(`it was answered ${got.status} ${got.body}`);
  return got;
}

const lendTurn: Turn = async (line) => {
  const { body } = await expected(line.post(`/browser_pools/${pool}/acquire`, "{}"), 200);
  const { session_id, lease_id } = JSON.parse(body) as Lease;
  const held = JSON.stringify({ session_id, lease_id });
  await expected(line.post(`/browser_pools/${pool}/release`, held), 204);
};

const launchTurn: Turn = async (line) => {
  const { body } = await expected(line.post("/browsers", JSON.stringify({ headless: true })), 200);
  const { session_id } = JSON.parse(body) as Lease;
  await expected(line.delete(`/browsers/${session_id}`, "{}"), 204);
};

const askTurn: Turn = async (line) => void (await expected(line.get("/auth/context"), 200));

async function measure(
  { turn, plain, checked, ...row }: Comparison,
  { sampleMs, isSwapped }: { sampleMs: number; isSwapped: boolean },
): Promise<Pair> {
  const sample = (side: Side): Promise<Sample> => sampleOf(side, { clients: row.clients, turn, sampleMs });
  const first = isSwapped ? undefined : await sample(plain);
  const found = await sample(checked);
  return { ...row, checked: found, plain: first ?? (await sample(plain)) };
}

async function sampleOf(
  { daemon, key }: Side,
  { clients, turn, sampleMs }: { clients: number; turn: Turn; sampleMs: number },
): Promise<Sample> {
  const lines = await Promise.all(times(clients).map(() => daemon.open(key)));
  const started = systemClock.monotonic();
  const { done, used } = await costOf(
    daemon,
    () => turnsIn(lines, turn, started + sampleMs),
    (turns) => turns,
  );
  const tookMs = systemClock.monotonic() - started;
  for (const line of lines) line.close();
  return { turnsPerSecond: (done / tookMs) * 1000, used };
}

/** Each client takes its turns in a row, without a pause; gives how many there were. */
async function turnsIn(lines: readonly Line[], turn: Turn, endsAt: number): Promise<number> {
  let turns = 0;
  await Promise.all(
    lines.map(async (line) => {
      while (systemClock.monotonic() < endsAt) {
        await turn(line);
        turns += 1;
      }
    }),
  );
  return turns;
}
