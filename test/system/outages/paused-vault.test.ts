import { expect, test } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import { type DaemonProcess, spawnDaemon } from "../../support/daemon/daemon-process.js";
import { DaemonPlace } from "../../support/daemon/daemon-settings.js";
import type { Got } from "../../support/http/http-server.js";
import { startRedis } from "../../support/store/redis.js";

const path = "/vaults/logins/items/shop";
const fields = [
  { name: "user", type: "text", sensitive: false, value: "before" },
  { name: "password", type: "password" },
];
const settings = {
  redis: { command_timeout_ms: 300 },
  vault: { form: { port: 0, public_url: "https://form.example" } },
};

/** Also what changes a vault is refused, or was made and is not on record, where Redis does not answer. */
const expectAway = ({ text, body }: Got): void =>
  expect(["store_unavailable", "audit_unavailable", "audit_unconfirmed"], text).toContain(body.code);

/** A busy machine may be silent for as long as a control waits for Redis. */
const answered = (what: string, ask: () => Promise<Got>): Promise<Got> =>
  until(what, async () => {
    const got = await ask();
    if (got.status !== 503) return got;
    expectAway(got);
    return undefined;
  });

/** What callers have been told. */
interface Told {
  /** The versions that a change was said to have made, and what it wrote. */
  readonly made: { readonly version: number; readonly user: string }[];
  readonly statuses: Set<number>;
  /** How often each control has said that Redis does not answer. */
  readonly away: number[];
  isEnough: boolean;
}

/** Reads, changes what it has read, and so on. */
async function keepChanging(daemon: DaemonProcess, at: number, told: Told): Promise<void> {
  for (let count = 0; !told.isEnough; count += 1) {
    const read = await daemon.call(`GET ${path}`);
    if (read.status !== 200) {
      note(read);
      continue;
    }
    // What a reader is told is the item as it was at one time.
    const { version, state, action } = read.body;
    expect([state.status, action.name]).toEqual(["pending_collection", "collect"]);
    const user = `${at}-${count}`;
    const spec = { fields: { user: { value: user } } };
    const changed = await daemon.call(`PATCH ${path}`, { type: "credential", version, spec });
    note(changed);
    if (changed.status === 200) told.made.push({ version: Number(changed.body.version), user });
  }
  function note(got: Got): void {
    told.statuses.add(got.status);
    if (got.status !== 503) return;
    expectAway(got);
    told.away[at % 2] = (told.away[at % 2] ?? 0) + 1;
  }
}

test("of changes at two controls beside a Redis that stands still again and again, each is made once or not at all", async () => {
  const redis = await startRedis();
  const places = [1, 2].map(() => new DaemonPlace({ role: "control", redisUrl: redis.url, file: settings }));
  const daemons = await Promise.all(places.map((place) => spawnDaemon(place)));
  const [one, other] = daemons;
  if (!one || !other) throw new Error("there are two controls");
  // One that was answered 503 may have been made all the same, and so the next finds it there.
  const made = await answered("a vault", () => one.call("POST /vaults", { name: "logins" }));
  expect([200, 201]).toContain(made.status);
  const spec = { provider: "native", fields };
  const put = await answered("an item", () => one.call(`PUT ${path}`, { type: "credential", spec }));
  expect(put.status).toBe(200);
  const told: Told = { made: [], statuses: new Set(), away: [0, 0], isEnough: false };
  const working = [0, 1, 2, 3].map((at) => keepChanging(at % 2 === 0 ? one : other, at, told));
  for (let round = 0; round < 4; round += 1) {
    const before = told.made.length;
    await until("changes are made", () => told.made.length > before + 10);
    const away = [...told.away];
    redis.signal("SIGSTOP");
    await until("both have said that it is away", () =>
      told.away.every((times, at) => times > (away[at] ?? 0) + 1),
    );
    redis.signal("SIGCONT");
  }
  const before = told.made.length;
  await until("changes are made", () => told.made.length > before + 10);
  told.isEnough = true;
  await Promise.all(working);

  expect([...told.statuses].toSorted()).toEqual([200, 409, 503]);
  const versions = told.made.map(({ version }) => version);
  expect(new Set(versions).size).toBe(versions.length);
  const { body } = await answered("the item", () => other.call(`GET ${path}`));
  const got = await answered("its events", () => one.call(`GET ${path}/events`));
  const events = got.body as { readonly name: string }[];
  const names = events.map(({ name }) => name).filter((name) => name !== "credential.created");
  expect(new Set(names)).toEqual(new Set(["credential.updated"]));
  // Each change counts once, whatever its caller was told.
  expect(events.length).toBeLessThan(1000);
  expect(names).toHaveLength(Number(body.version) - 1);
  const last = told.made.find(({ version }) => version === body.version);
  if (last) expect(body.state.fields.user.value).toBe(last.user);
  await Promise.all(daemons.map((daemon) => daemon.stop()));
  await redis.stop();
});
