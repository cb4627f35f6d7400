import { expect, test } from "vitest";
import { sharedAccessBed } from "../support/access/access-bed.js";
import { extensionZip } from "../support/archive/zip-bytes.js";
import { type DaemonClient, startDaemon } from "../support/daemon/daemon.js";
import { multipartBody, multipartType, file, field } from "../support/http/multipart-body.js";

const bed = sharedAccessBed(2, {
  projects: { enabled: true },
  telemetry: { export: { private_hosts: ["127.0.0.1"] } },
});
/** The official client's next attempt, and the one after that. */
const repeat = (count = 1) => ({ "x-stainless-retry-count": String(count) });

type Make = (client: DaemonClient, name: string) => Promise<string>;
const makeAt =
  (path: string, body: object): Make =>
  async (client, name) => {
    const made = await client.call(`POST ${path}`, { name, ...body });
    expect(made, made.text).toMatchObject({ status: 201 });
    return String(made.body.id);
  };
const makeExtension: Make = async (client, name) => {
  const body = multipartBody([field("name", name), file("file", extensionZip())]);
  const headers = { authorization: `Bearer ${client.apiKey}`, "content-type": multipartType };
  const made = await fetch(`${client.url}/extensions`, { method: "POST", headers, body });
  expect(made.status).toBe(201);
  return ((await made.json()) as { id: string }).id;
};
const endpoint = "http://127.0.0.1:9";
const kinds: readonly (readonly [path: string, make: Make])[] = [
  ["/browser_pools", makeAt("/browser_pools", { size: 1, headless: true, fill_rate_per_minute: 0 })],
  ["/profiles", makeAt("/profiles", {})],
  ["/extensions", makeExtension],
  ["/telemetry/destinations", makeAt("/telemetry/destinations", { endpoint })],
  ["/vaults", makeAt("/vaults", {})],
  ["/org/projects", makeAt("/org/projects", {})],
];

const named = async (path: string, name: string): Promise<readonly string[]> =>
  ((await bed.root.call(`GET ${path}`)).body as { id: string; name?: string }[])
    .filter((item) => item.name === name)
    .map(({ id }) => id);

test.each(kinds)("a repeat of DELETE %s/{name} deletes no later one of that name", async (path, make) => {
  const { root } = bed;
  const other = bed.as(root.apiKey, 1);
  await make(root, "herd");
  const removal = `DELETE ${path}/herd`;
  // Its reply is lost, so that the client asks again, here another control.
  expect((await root.call(removal, {})).status).toBe(204);
  const later = await make(root, "herd");
  for (const count of [1, 2]) expect((await other.call(removal, {}, repeat(count))).status).toBe(204);
  expect(await named(path, "herd")).toEqual([later]);
  // Whoever asks anew means the later one, and so does the repeat of that.
  expect((await root.call(removal, {})).status).toBe(204);
  expect((await other.call(removal, {}, repeat())).status).toBe(204);
  expect(await named(path, "herd")).toEqual([]);
});

test.each(kinds)(
  "the repeat of DELETE %s/{name} whose first attempt never came deletes it",
  async (path, make) => {
    const { root } = bed;
    await make(root, "alone");
    expect((await root.call(`DELETE ${path}/alone`, {}, repeat())).status).toBe(204);
    const later = await make(root, "alone");
    expect((await root.call(`DELETE ${path}/alone`, {}, repeat(2))).status).toBe(204);
    expect(await named(path, "alone")).toEqual([later]);
    expect((await root.call(`DELETE ${path}/${later}`, {})).status).toBe(204);
  },
);

test("the repeat of what closes a project is answered also to who names that project", async () => {
  const { root } = bed;
  const other = bed.as(root.apiKey, 1);
  const make = makeAt("/org/projects", {});
  const { key } = await bed.make();
  for (const client of [root, bed.as(key)]) {
    for (const name of [undefined, "leaving"]) {
      const id = await make(root, "leaving");
      const inIt = { "x-kernel-project-id": id };
      const removal = `DELETE /org/projects/${name ?? id}`;
      expect((await client.call(removal, {}, inIt)).status).toBe(204);
      // The project is there no more that the header names.
      expect((await client.call(removal, {}, inIt)).status).toBe(404);
      expect((await client.call(removal, {}, { ...inIt, ...repeat() })).status).toBe(204);
      expect((await client.call("GET /browser_pools", undefined, { ...inIt, ...repeat() })).status).toBe(404);
    }
    const id = await make(root, "resting");
    const inIt = { "x-kernel-project-id": id };
    const archive = (headers: Record<string, string>) =>
      client.call(`PATCH /org/projects/${id}`, { status: "archived" }, headers);
    expect(await archive(inIt)).toMatchObject({ status: 200 });
    expect(await archive(inIt)).toMatchObject({ status: 404 });
    expect(await archive({ ...inIt, ...repeat() })).toMatchObject({
      status: 200,
      body: { status: "archived" },
    });
    expect((await other.call(`DELETE /org/projects/${id}`, {})).status).toBe(204);
  }
});

test("what a deletion meant is kept by no name, and not for long", async () => {
  const { root, redis } = bed;
  await kinds[0]?.[1](root, "secretive");
  expect((await root.call("DELETE /browser_pools/secretive", {})).status).toBe(204);
  const notes = await redis.keys("remuda:{access}:removal:*");
  expect(notes.filter((key) => key.includes("secretive"))).toEqual([]);
  const leftMs = await Promise.all(notes.map((key) => redis.pttl(key)));
  expect(leftMs.length).toBeGreaterThan(0);
  for (const left of leftMs) expect(left).toBeGreaterThan(0);
  expect(Math.max(...leftMs)).toBeLessThanOrEqual(120_000);
});

test("what one caller has deleted says nothing of another's deletion, nor of another kind or project", async () => {
  const { root } = bed;
  const [[, makePool], [, makeProfile]] = kinds as readonly [(typeof kinds)[0], (typeof kinds)[0]];
  const inIt = { "x-kernel-project-id": (await root.call("POST /org/projects", { name: "beside" })).body.id };
  await makePool(root, "flock");
  expect((await root.call("DELETE /browser_pools/flock", {})).status).toBe(204);
  await makePool(root, "flock");
  const { key } = await bed.make();
  expect((await bed.as(key).call("DELETE /browser_pools/flock", {}, repeat())).status).toBe(204);
  expect((await root.call("GET /browser_pools/flock")).status).toBe(404);
  await makeProfile(root, "flock");
  expect((await root.call("DELETE /profiles/flock", {}, repeat())).status).toBe(204);
  expect((await root.call("GET /profiles/flock")).status).toBe(404);
  expect((await root.call("POST /profiles", { name: "flock" }, inIt)).status).toBe(201);
  expect((await root.call("DELETE /profiles/flock", {}, { ...inIt, ...repeat() })).status).toBe(204);
  expect((await root.call("GET /profiles/flock", undefined, inIt)).status).toBe(404);
});

test("a key with a policy repeats by name what it has deleted, and deletes no later one", async () => {
  const { root } = bed;
  const on = { resource: "projects/default/*" };
  const actions = ["profiles:read", "profiles:create", "profiles:delete"];
  const { key } = await bed.make({ policy: { statements: actions.map((action) => ({ action, ...on })) } });
  const client = bed.as(key);
  const make = makeAt("/profiles", {});
  await make(client, "mine");
  expect((await client.call("DELETE /profiles/mine")).status).toBe(204);
  const later = await make(client, "mine");
  expect((await client.call("DELETE /profiles/mine", undefined, repeat())).status).toBe(204);
  expect((await root.call("GET /profiles/mine")).body).toMatchObject({ id: later });
});

test("a repeat of DELETE /browsers/{name} ends no later session of that name, on demand or of a pool", async () => {
  // On a busy machine nobody is lost who is only slow, and nothing ends that is lent there.
  const daemon = await startDaemon({
    file: {
      acquire: { control_lost_after_ms: 60_000, provisional_seconds: 60 },
      node: { lost_after_ms: 60_000 },
    },
  });
  try {
    await daemon.makePool({ name: "herd", size: 2 });
    const begin = {
      "on demand": () => daemon.call("POST /browsers", { name: "job", headless: true }),
      "of a pool": () => daemon.call("POST /browser_pools/herd/acquire", { name: "job" }),
    };
    for (const [how, take] of Object.entries(begin)) {
      expect(await take(), how).toMatchObject({ status: 200 });
      expect((await daemon.call("DELETE /browsers/job")).status).toBe(204);
      const later = await take();
      expect((await daemon.call("DELETE /browsers/job", undefined, repeat())).status).toBe(204);
      expect((await daemon.call("GET /browsers/job")).body).toMatchObject({ lease_id: later.body.lease_id });
      expect((await daemon.call("DELETE /browsers/job")).status).toBe(204);
      expect((await daemon.call("GET /browsers/job")).status).toBe(404);
    }
  } finally {
    await daemon.stop();
  }
});
