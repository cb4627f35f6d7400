import { afterAll, beforeAll, expect, test } from "vitest";
import { sharedAccessBed, type MadeKey } from "../../support/access/access-bed.js";
import { type FakeChromium, makeFakeChromium, standIn } from "../../support/browser/chromium-fake.js";
import { type Daemon, type DaemonClient, type Lease, startDaemon } from "../../support/daemon/daemon.js";
import type { Got } from "../../support/http/http-server.js";

// On a busy machine a daemon that is silent for a while would be taken for lost, with what it has lent.
const patient = {
  acquire: { control_lost_after_ms: 60_000, provisional_seconds: 60 },
  node: { lost_after_ms: 60_000 },
};
const bed = sharedAccessBed(2, patient);
const both = [0, 1];
const callersOfEach = { look: 4, lend: 2 };

let fake: FakeChromium;
let node: Daemon;
beforeAll(async () => {
  fake = await makeFakeChromium();
  const file = { ...standIn(fake), ...patient, drain: { limit_seconds: 0 } };
  node = await startDaemon({ role: "node", redisUrl: bed.redisUrl, file });
  // A browser for each caller, so that nobody is turned away for want of one.
  await bed.root.makePool({ name: "herd", size: both.length * callersOfEach.lend });
});
afterAll(async () => {
  await node.stop();
  await fake.remove();
});

type Ask = (operation: string, body?: object) => Promise<Got | undefined>;

/** What a caller does again and again. */
interface Load {
  readonly callers: number;
  /** What each of its operations answers as long as the key is good. */
  readonly served: Readonly<Record<string, number>>;
  /** One turn of a caller who has just come. */
  makeTurn(): (ask: Ask) => Promise<unknown>;
}

const look = "GET /auth/context";
const looking: Load = {
  callers: callersOfEach.look,
  served: { [look]: 200 },
  makeTurn: () => (ask) => ask(look),
};

const acquire = "POST /browser_pools/herd/acquire";
const release = "POST /browser_pools/herd/release";
const lending: Load = {
  callers: callersOfEach.lend,
  served: { [acquire]: 200, [release]: 204 },
  makeTurn() {
    let last: Lease | undefined;
    return async (ask) => {
      const got = await ask(acquire, { acquire_timeout_seconds: 0 });
      if (got?.status === 200) last = got.body as Lease;
      // Whoever is lent nothing any more goes on trying to give back what it was lent last.
      if (last) await ask(release, { session_id: last.session_id, lease_id: last.lease_id });
    };
  },
};

interface Answer {
  readonly operation: string;
  readonly from: number;
  readonly status: number | "cut";
}

/** A caller at one control, who goes on until it is told to stop; gives each request's start and status. */
function callAt(control: number, { key }: MadeKey, { makeTurn }: Load) {
  const client = bed.as(key, control);
  const answers: Answer[] = [];
  const state = { isOver: false };
  const ask: Ask = async (operation, body) => {
    const from = performance.now();
    // What was let in, and is not answered yet when its key ends, may be cut.
    const got = await client.call(operation, body).catch(() => undefined);
    answers.push({ operation, from, status: got?.status ?? "cut" });
    return got;
  };
  const run = async (): Promise<void> => {
    const turn = makeTurn();
    while (!state.isOver) await turn(ask);
  };
  const running = run();
  return {
    answers,
    async stop(): Promise<void> {
      state.isOver = true;
      await running;
    },
  };
}

/** What the pool has lent so far. */
const lent = async (): Promise<unknown> =>
  (await bed.root.browsersOf("herd")).map(({ session_id, state, leases_served }) => ({
    session_id,
    state,
    leases_served,
  }));

/** Ends a key that callers use at both controls: nothing that they ask after that is let in. */
async function expectRevoked(load: Load, revoke: (key: string) => Promise<Got>): Promise<void> {
  const made = await bed.make();
  const callers = both.flatMap((control) =>
    Array.from({ length: load.callers }, () => callAt(control, made, load)),
  );
  const operations = Object.keys(load.served);
  /** How many answers count, for the caller and the operation that have the fewest. */
  const fewest = (counts: (one: Answer) => boolean): number =>
    Math.min(
      ...callers.flatMap(({ answers }) =>
        operations.map((of) => answers.filter((one) => one.operation === of && counts(one)).length),
      ),
    );
  await expect
    .poll(() => fewest(({ operation, status }) => status === load.served[operation]))
    .toBeGreaterThan(10);
  expect((await revoke(made.id)).status).toBeLessThan(300);
  const revokedAt = performance.now();
  const isLate = ({ from }: Answer): boolean => from > revokedAt;
  // Whoever has an answer to what was asked later has one to all that was asked before.
  await expect.poll(() => fewest(isLate)).toBeGreaterThan(0);
  const before = await lent();
  await expect.poll(() => fewest(isLate)).toBeGreaterThan(10);
  for (const one of callers) await one.stop();
  for (const { answers } of callers)
    expect(new Set(answers.filter(isLate).map(({ status }) => status))).toEqual(new Set([401]));
  expect(await lent()).toEqual(before);
}

const ends: Readonly<Record<string, (id: string, by: DaemonClient) => Promise<Got>>> = {
  deleted: (id, by) => by.call(`DELETE /org/api_keys/${id}`),
  "rotated without a grace": (id, by) => by.call(`POST /org/api_keys/${id}/rotate`, { expire_in_days: 0 }),
};
const rootAt = (control: number): DaemonClient => bed.as(bed.root.apiKey, control);

test.each(Object.entries(ends))(
  "a key that is %s under load lets in not one request more, on either control",
  async (_, end) => {
    await expectRevoked(looking, (id) => end(id, bed.root));
  },
);

/** What a key that has ended could not give back. */
async function giveBack(): Promise<void> {
  for (const { session_id, state } of await bed.root.browsersOf("herd"))
    if (state === "leased") expect((await bed.root.call(release, { session_id })).status).toBe(204);
}

test.each(Object.entries(ends).flatMap(([how, end]) => both.map((at) => [how, at, end] as const)))(
  "a key that is %s at control %i amid acquires and releases lends and gives back nothing more, on either",
  async (_, at, end) => {
    await expectRevoked(lending, (id) => end(id, rootAt(at)));
    await giveBack();
  },
);
