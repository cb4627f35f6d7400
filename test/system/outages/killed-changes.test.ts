import type { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DaemonPlace } from "../../support/daemon/daemon-settings.js";
import { type DaemonProcess, spawnDaemon } from "../../support/daemon/daemon-process.js";
import { destinationBody } from "../../support/http/recorded-audit.js";
import { type CutProxy, openCutProxy } from "../../support/store/cut-proxy.js";
import { startRedis, type TestRedis } from "../../support/store/redis.js";

const elevenMinutesMs = 660_000;
const patience = { timeout: 60_000 };
const intentsKey = "remuda:{audit}:auditIntents";
const projectsKey = "remuda:{access}:projects";
const runs = Number(process.env["KILLED_CHANGES_RUNS"] ?? 1);

let redis: TestRedis;
let client: Redis;
let proxy: CutProxy;
let direct: DaemonPlace;
let behind: DaemonPlace;
beforeAll(async () => {
  redis = await startRedis();
  client = redis.client();
  proxy = await openCutProxy(redis.url);
  const file = {
    projects: { enabled: true },
    telemetry: { export: { private_hosts: ["127.0.0.1"] } },
    audit: { seal_period_seconds: 1, export: { assume_role: false } },
  };
  direct = new DaemonPlace({ role: "control", redisUrl: redis.url, file });
  behind = new DaemonPlace({ role: "control", redisUrl: proxy.url, file });
});
afterAll(async () => {
  client.disconnect();
  await proxy.close();
  await redis.stop();
  for (const place of [direct, behind]) place.remove();
});

const destinations = "/audit-logs/export/destinations";
const collectors = "/telemetry/destinations";
/** Nothing is sent there: there are no browsers. */
const collectorNamed = (name: string) => ({ name, endpoint: "http://127.0.0.1:9" });
/** What there is to be changed. */
async function prepare(daemon: DaemonProcess) {
  const make = async (operation: string, body: object): Promise<string> => {
    const got = await daemon.call(operation, body);
    if (got.status !== 201) throw new Error(`${operation}: ${got.text}`);
    return (got.body as { id: string }).id;
  };
  const key = (name: string): Promise<string> => make("POST /org/api_keys", { name });
  const project = (name: string): Promise<string> => make("POST /org/projects", { name });
  const destination = (): Promise<string> => make(`POST ${destinations}`, destinationBody());
  const collector = (name: string): Promise<string> => make(`POST ${collectors}`, collectorNamed(name));
  return {
    renamed: await key("to be renamed"),
    deleted: await key("to be deleted"),
    rotated: await key("to be rotated"),
    archived: await project("to be archived"),
    renamedProject: await project("to be renamed"),
    removed: await project("to be removed"),
    limited: await project("to be limited"),
    paused: await destination(),
    dropped: await destination(),
    described: await collector("to-be-described"),
    forgotten: await collector("to-be-forgotten"),
  };
}
type Ids = Awaited<ReturnType<typeof prepare>>;

interface Change {
  readonly operation: string;
  readonly body?: object;
  /** Whether it was made, as one sees afterwards. */
  isMade(daemon: DaemonProcess): Promise<boolean>;
}

function changesOf(ids: Ids): readonly Change[] {
  const read = async (daemon: DaemonProcess, path: string) => await daemon.call(`GET ${path}`);
  const isGone = (path: string) => async (daemon: DaemonProcess) => (await read(daemon, path)).status === 404;
  const has = (path: string, field: string, value: unknown) => async (daemon: DaemonProcess) =>
    (await read(daemon, path)).body[field] === value;
  const lists = (path: string, field: string, value: unknown) => async (daemon: DaemonProcess) =>
    ((await read(daemon, path)).body as Record<string, unknown>[]).some((one) => one[field] === value);
  const [keys, projects] = ["/org/api_keys", "/org/projects"];
  const patch = (path: string, body: Record<string, unknown>, at = path): Change => {
    const [[field = "", value] = []] = Object.entries(body);
    return { operation: `PATCH ${path}`, body, isMade: has(at, field, value) };
  };
  const remove = (path: string): Change => ({ operation: `DELETE ${path}`, isMade: isGone(path) });
  return [
    { operation: `POST ${keys}`, body: { name: "made" }, isMade: lists(keys, "name", "made") },
    { operation: `POST ${projects}`, body: { name: "made" }, isMade: lists(projects, "name", "made") },
    patch(`${keys}/${ids.renamed}`, { name: "renamed" }),
    remove(`${keys}/${ids.deleted}`),
    {
      operation: `POST ${keys}/${ids.rotated}/rotate`,
      body: {},
      isMade: async (daemon) => (await read(daemon, `${keys}/${ids.rotated}`)).body.expires_at !== null,
    },
    patch(`${projects}/${ids.archived}`, { status: "archived" }),
    patch(`${projects}/${ids.renamedProject}`, { name: "renamed" }),
    remove(`${projects}/${ids.removed}`),
    patch(`${projects}/${ids.limited}/limits`, { max_concurrent_sessions: 7 }),
    patch("/org/limits", { default_project_max_concurrent_sessions: 9 }),
    {
      operation: `POST ${destinations}`,
      body: destinationBody({ prefix: "made" }),
      isMade: lists(destinations, "prefix", "made"),
    },
    patch(`${destinations}/${ids.paused}`, { prefix: "elsewhere" }),
    remove(`${destinations}/${ids.dropped}`),
    {
      operation: `POST ${collectors}`,
      body: collectorNamed("made"),
      isMade: lists(collectors, "name", "made"),
    },
    patch(`${collectors}/${ids.described}`, { description: "changed" }),
    remove(`${collectors}/${ids.forgotten}`),
  ];
}

/** As if what is under way had been so for long: whoever did it is dead. */
async function letTimePass(): Promise<void> {
  for (const [id, text] of Object.entries(await client.hgetall(intentsKey))) {
    const [noted = "", ...rest] = text.split(" ");
    await client.hset(intentsKey, id, [Number(noted) - elevenMinutesMs, ...rest].join(" "));
  }
  for (const [id, text] of Object.entries(await client.hgetall(projectsKey))) {
    const project = JSON.parse(text) as { closing?: { deadline: number } };
    if (project.closing) project.closing.deadline -= elevenMinutesMs;
    await client.hset(projectsKey, id, JSON.stringify(project));
  }
}

const isSuccess = (status: number): boolean => status >= 200 && status < 300;
const isSettled = async (): Promise<boolean> =>
  (await client.hlen(intentsKey)) === 0 && !(await client.hvals(projectsKey)).join().includes('"closing"');

test.each(Array.from({ length: runs }, (_, run) => run))(
  "of changes whose control is killed each is on record once, or was not made, and none is half made (run %i)",
  async () => {
    await client.flushall();
    const before = await spawnDaemon(direct);
    const ids = await prepare(before);
    await before.end("SIGTERM");
    const since = new Date().toISOString();
    const changes = changesOf(ids);
    const killed = await spawnDaemon(behind);
    const cutAt = 1 + Math.floor(Math.random() * 4 * changes.length);
    const cut = proxy.cutAfter(cutAt);
    const asked = changes.map(({ operation, body }) =>
      killed.call(operation, body).then(
        ({ status }) => status,
        () => undefined,
      ),
    );
    await Promise.race([cut, Promise.all(asked)]);
    await killed.end("SIGKILL");
    const answers = await Promise.all(asked);
    proxy.restore();

    const after = await spawnDaemon(direct);
    await letTimePass();
    await expect.poll(isSettled, patience).toBe(true);
    const end = new Date(Date.now() + 60_000).toISOString();
    const log = await after.call(`GET /audit-logs?${new URLSearchParams({ start: since, end }).toString()}`);
    const entries = log.body as { method: string; path: string; status: number }[];
    for (const [at, { operation, isMade }] of changes.entries()) {
      const of = entries.filter(({ method, path }) => `${method} ${path}` === operation);
      const answer = answers[at] ?? 0;
      const what = `${operation}, answered ${answer}, cut after ${cutAt}: ${JSON.stringify(of)}`;
      const made = await isMade(after);
      expect(of.length, what).toBeLessThanOrEqual(1);
      if (made) expect(of.length, what).toBe(1);
      if (isSuccess(of[0]?.status ?? 0)) expect(made, what).toBe(true);
      if (isSuccess(answer)) expect([made, of[0]?.status], what).toEqual([true, answer]);
    }
    const left = await after.call(`GET /org/projects/${ids.removed}`);
    expect([404, "active"]).toContain(left.status === 404 ? 404 : left.body.status);
    await after.end("SIGTERM");
  },
  120_000,
);
