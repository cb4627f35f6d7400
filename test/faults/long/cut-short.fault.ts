import { Redis } from "ioredis";
import { afterEach, beforeEach, expect } from "vitest";
import { extensionZip } from "../../support/archive/zip-bytes.js";
import { until } from "../../support/browser/chromium-until.js";
import { type DaemonProcess, spawnDaemon } from "../../support/daemon/daemon-process.js";
import { DaemonPlace, launchClaimMs } from "../../support/daemon/daemon-settings.js";
import { Fleet } from "../../support/daemon/fleet.js";
import { ageKeys } from "../../support/store/age.js";
import { type CutProxy, openCutProxy } from "../../support/store/cut-proxy.js";
import { fault, startWatch } from "../../support/faults/fault.js";

let fleet: Fleet;
let control: DaemonProcess;
let redis: Redis;
let proxy: CutProxy;
let before: readonly string[];
beforeEach(async () => {
  fleet = await Fleet.open();
  control = await fleet.control();
  await fleet.node("only");
  redis = new Redis(fleet.redis.url);
  proxy = await openCutProxy(fleet.redis.url);
  // What stays when there is nothing: the partition of sessions on demand.
  const { body } = await control.call("POST /browsers", { headless: true });
  await control.call(`DELETE /browsers/${body.session_id}`);
  await until("one session gone", async () => !(await keysOfNow()).some((key) => key.endsWith(":browsers")));
  before = await keysOfNow();
});
afterEach(async () => {
  redis.disconnect();
  await proxy.close();
  await fleet.close();
});

/** Each has a limit of its own, is the fleet's, or is a list that is empty in time. */
const other =
  /\{(nodes|queue|audit)\}|:schema$|:(events|controls|nodeStamps|endedLeases|pendingTombstones|tombstone\w+|answer:.*|idempotency:.*|removal:.*)$/;
const keysOfNow = async (): Promise<readonly string[]> =>
  (await redis.keys("remuda:*")).filter((key) => !other.test(key)).toSorted();

type Headers = Readonly<Record<string, string>>;
interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, string>>;
}

/** A request that changes something; `prepare` makes what it is about. */
interface Change {
  readonly name: string;
  prepare?(): Promise<string>;
  ask(at: DaemonProcess, headers: Headers, about: string): Promise<Answer>;
  /** What its repeat may be answered once the first has come to nothing, or to something. */
  readonly again: readonly number[];
}

const calls =
  (operation: string, body?: unknown): Change["ask"] =>
  (at, headers, about) =>
    at.call(operation.replace("$", about), body, headers) as Promise<Answer>;
const idOf = ({ body }: Answer): string => body.session_id ?? body.id ?? "";
const made = async (operation: string, body: unknown): Promise<string> =>
  idOf((await control.call(operation, body)) as Answer);
const pool = { name: "herd", size: 1, headless: true };
const filled = async (): Promise<string> => (await control.makePool(pool)).id;
const lent = async (): Promise<string> => {
  await filled();
  return await made("POST /browser_pools/herd/acquire", { acquire_timeout_seconds: 30 });
};
const session = { headless: true, name: "mine" };
const proxyBody = { name: "out", type: "custom", config: { host: "proxy.example", port: 8080 } };
const uploaded = async (at: DaemonProcess, headers: Headers): Promise<Answer> => {
  const form = new FormData();
  form.set("name", "marks");
  form.set("file", new Blob([extensionZip()]), "marks.zip");
  const reply = await fetch(`${at.url}/extensions`, {
    method: "POST",
    headers: { authorization: `Bearer ${at.apiKey}`, ...headers },
    body: form,
  });
  return { status: reply.status, body: (await reply.json()) as Answer["body"] };
};
const used = async (): Promise<string> => {
  const id = idOf(await uploaded(control, {}));
  await control.call("POST /browser_pools", { ...pool, fill_rate_per_minute: 0, extensions: [{ id }] });
  return id;
};

const changes: readonly Change[] = [
  { name: "POST /browser_pools", ask: calls("POST /browser_pools", pool), again: [201, 409] },
  {
    name: "PATCH /browser_pools/{id}",
    prepare: filled,
    ask: calls("PATCH /browser_pools/$", {
      name: "flock",
      size: 2,
      network: { allowed_hosts: ["a.example"] },
    }),
    again: [200],
  },
  {
    name: "DELETE /browser_pools/{name}",
    prepare: used,
    ask: calls("DELETE /browser_pools/herd", { force: true }),
    again: [204],
  },
  { name: "flush", prepare: filled, ask: calls("POST /browser_pools/$/flush"), again: [204] },
  {
    name: "acquire",
    prepare: filled,
    ask: calls("POST /browser_pools/$/acquire", { name: "mine", acquire_timeout_seconds: 30 }),
    again: [200, 409],
  },
  {
    name: "release",
    prepare: lent,
    ask: (at, headers, session_id) =>
      at.call("POST /browser_pools/herd/release", { session_id }, headers) as Promise<Answer>,
    again: [204],
  },
  { name: "POST /browsers", ask: calls("POST /browsers", session), again: [200, 409] },
  {
    name: "PATCH /browsers/{id}",
    prepare: () => made("POST /browsers", session),
    ask: calls("PATCH /browsers/$", { name: "yours", tags: { a: "b" } }),
    again: [200],
  },
  {
    name: "PATCH /browsers/{id} of what its node changes",
    prepare: () => made("POST /browsers", session),
    ask: calls("PATCH /browsers/$", {
      network: { allowed_hosts: ["a.example"] },
      viewport: { width: 800, height: 600 },
    }),
    again: [200],
  },
  {
    name: "DELETE /browsers/{id}",
    prepare: () => made("POST /browsers", session),
    ask: calls("DELETE /browsers/$"),
    again: [204],
  },
  { name: "POST /extensions", ask: uploaded, again: [201, 409] },
  {
    name: "DELETE /extensions/{name}",
    prepare: async () => idOf(await uploaded(control, {})),
    ask: calls("DELETE /extensions/marks"),
    again: [204],
  },
  { name: "POST /profiles", ask: calls("POST /profiles", { name: "me" }), again: [201, 409] },
  {
    name: "PATCH /profiles/{id}",
    prepare: () => made("POST /profiles", { name: "me" }),
    ask: calls("PATCH /profiles/$", { name: "other" }),
    again: [200],
  },
  {
    name: "DELETE /profiles/{id}",
    prepare: () => made("POST /profiles", { name: "me" }),
    ask: calls("DELETE /profiles/$"),
    again: [204],
  },
  { name: "POST /proxies", ask: calls("POST /proxies", proxyBody), again: [201] },
  {
    name: "PATCH /proxies/{id}",
    prepare: () => made("POST /proxies", proxyBody),
    ask: calls("PATCH /proxies/$", { name: "way" }),
    again: [200],
  },
  {
    name: "DELETE /proxies/{id}",
    prepare: () => made("POST /proxies", proxyBody),
    ask: calls("DELETE /proxies/$"),
    again: [204],
  },
];

const keyed = new Set(["POST /browser_pools", "acquire", "POST /browsers"]);

/** Everything there is, is deleted, whatever it takes: nothing may be in the way of that, or be left. */
async function clear(what: string): Promise<void> {
  // What whoever died on the way had reserved is void after two minutes, room for a launch after longer.
  const spanning = (await redis.keys("remuda:*")).filter((key) =>
    /:(names|reservations|usage|pools|room)$/.test(key),
  );
  await ageKeys(redis, spanning, launchClaimMs + 1000);
  let left: readonly string[] = [];
  const isEmpty = async (): Promise<boolean> => {
    await deleteAll(what);
    left = (await keysOfNow()).filter((key) => !before.includes(key));
    return left.length === 0;
  };
  await until("everything gone", isEmpty).catch((cause: unknown) => {
    throw new Error(`${what}: left ${left.join(" ")}`, { cause });
  });
}

const lists = ["browser_pools", "browsers", "extensions", "profiles", "proxies"];

async function deleteAll(what: string): Promise<void> {
  for (const list of lists)
    for (const one of (await control.call(`GET /${list}`)).body as readonly Record<string, string>[]) {
      const body = list === "browser_pools" ? { force: true } : undefined;
      const { status, text } = await control.call(`DELETE /${list}/${one.session_id ?? one.id}`, body);
      expect([204, 404], `${what}: DELETE of one of ${list}: ${text}`).toContain(status);
    }
}

interface Outcome {
  readonly places: number;
  /** The longest that it took until nothing was left. */
  readonly clearMs: number;
  readonly statuses: ReadonlySet<number>;
}

/** The change is cut off after its first command that changes anything, its second, and so on. */
async function sweep({ name, prepare, ask, again }: Change, isKeyed: boolean): Promise<Outcome> {
  const statuses = new Set<number>();
  let clearMs = 0;
  for (let nth = 1; ; nth += 1) {
    const about = (await prepare?.()) ?? "";
    const headers: Headers = isKeyed ? { "idempotency-key": `key-${nth}` } : {};
    const end = await dies((at) => ask(at, headers, about), nth);
    const what = `${name} after ${nth}`;
    if (end === "cut") {
      const { status, body } = await ask(control, { ...headers, "x-stainless-retry-count": "1" }, about);
      expect(isKeyed ? again.slice(0, 1) : again, `${what}: ${JSON.stringify(body)}`).toContain(status);
      statuses.add(status);
    }
    const watch = startWatch();
    await clear(what);
    if (end === "through") return { places: nth - 1, statuses, clearMs };
    clearMs = Math.max(clearMs, watch.since());
  }
}

/** A control is asked, and dies when Redis has carried out its nth change. */
async function dies(ask: (at: DaemonProcess) => Promise<Answer>, nth: number): Promise<"cut" | "through"> {
  const dying = await spawnDaemon(new DaemonPlace({ role: "control", redisUrl: proxy.url }));
  const cut = proxy.cutAfter(nth).then(() => "cut" as const);
  const through = ask(dying).then(
    () => "through" as const,
    () => "cut" as const,
  );
  const end = await Promise.race([cut, through]);
  await dying.end("SIGKILL");
  dying.place.remove();
  proxy.restore();
  return end;
}

for (const change of changes)
  for (const isKeyed of keyed.has(change.name) ? [false, true] : [false])
    fault(
      `a control dies between two commands of ${change.name}${isKeyed ? " with a key" : ""}`,
      async (tell) => {
        const { places, statuses, clearMs } = await sweep(change, isKeyed);
        const saw = `after each of ${places}: its repeat ${[...statuses].join(", ")}, and nothing is left`;
        tell({ saw, recoveryMs: clearMs });
      },
      400_000,
    );
