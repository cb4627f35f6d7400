import { beforeAll, expect, test } from "vitest";
import { loadScripts } from "../../src/store/redis/scripts.js";
import { type MadeKey, sharedAccessBed } from "../support/access/access-bed.js";
import type { Got } from "../support/http/http-server.js";

const perMinute = 240;
const bed = sharedAccessBed(2, { projects: { enabled: true }, limits: { requests_per_minute: perMinute } });
beforeAll(async () => {
  expect((await bed.root.call("POST /browser_pools", { name: "herd", size: 1 })).status).toBe(201);
});

const acquire = "POST /browser_pools/herd/acquire";
const release = "POST /browser_pools/herd/release";
/** Where it is let in, it is told that no browser is idle. */
const atOnce = { acquire_timeout_seconds: 0 };
const gone = { session_id: "0123456789abcdefghijklmn" };

/** A key that has come before: whom it lets in is known there. */
async function knownKey(body: object = {}): Promise<MadeKey> {
  const made = await bed.make(body);
  expect((await bed.as(made.key).call("GET /auth/context")).status).toBe(200);
  expect([404, 409]).toContain((await bed.as(made.key).call(release, gone)).status);
  return made;
}

/**
 * What Redis judges a key by: a look-up, or the first script of an acquire or a release. Which one that is
 * depends on how long ago the pool was asked last.
 */
const judging = new Map(
  [...loadScripts().values()].flatMap(({ name, sha, judged }) => [
    ...(name === "admit" ? [[sha, "looked up"] as const] : []),
    ...(judged ? [[judged.sha, "judged along the way"] as const] : []),
  ]),
);

/** How keys were judged meanwhile. */
async function judgedBy(work: () => Promise<unknown>): Promise<string[]> {
  await bed.redis.config("SET", "slowlog-log-slower-than", "0");
  await bed.redis.config("SET", "slowlog-max-len", "10000");
  await bed.redis.slowlog("RESET");
  await work();
  const entries = (await bed.redis.slowlog("GET", 10_000)) as [number, number, number, string[]][];
  await bed.redis.config("SET", "slowlog-log-slower-than", "-1");
  return entries.toReversed().flatMap(([, , , [, sha = ""]]) => judging.get(sha) ?? []);
}

test("a key that has come before costs an acquire and a release no round trip of its own", async () => {
  const { key } = await bed.make();
  const client = bed.as(key);
  const ask = (operation: string, body: object) => async () => {
    const { status, headers } = await client.call(operation, body);
    expect(headers.get("x-ratelimit-limit")).toBe(String(perMinute));
    expect([204, 404]).toContain(status);
  };
  expect(await judgedBy(ask(acquire, atOnce))).toEqual(["looked up"]);
  expect(await judgedBy(ask(acquire, atOnce))).toEqual(["judged along the way"]);
  const { body } = await bed.root.call("GET /browser_pools/herd");
  const session_id = `${String(body.id).slice(0, 12)}${"0".repeat(12)}`;
  expect(await judgedBy(ask(release, { session_id }))).toEqual(["judged along the way"]);
});

test("a known key is one, however its header is spelled, and another is none", async () => {
  const { key } = await knownKey();
  const other = await bed.make();
  const shown = (authorization: string) => async () => {
    const got = await bed.root.call(acquire, atOnce, { authorization });
    expect([got.status, Number(got.headers.get("x-ratelimit-limit"))]).toEqual([204, perMinute]);
  };
  for (const authorization of [`Bearer ${key}`, `bearer ${key}`, `BEARER   ${key}`])
    expect(await judgedBy(shown(authorization))).toEqual(["judged along the way"]);
  const wrong = `Bearer ${key.slice(0, -1)}${key.endsWith("0") ? "1" : "0"}`;
  expect((await bed.root.call(acquire, atOnce, { authorization: wrong })).status).toBe(401);
  expect(await judgedBy(shown(`Bearer ${other.key}`))).toEqual(["looked up"]);
});

/**
 * What a key is answered once its rate is used up; until then its acquires are answered `letIn`. Turns come
 * back meanwhile, so that requests one after the other might never use it up on a slow machine.
 */
async function refusedAmong(key: string, body: object, letIn: number): Promise<Got> {
  const width = 16;
  for (let turns = 0; turns < 3 * perMinute; turns += width) {
    const got = await Promise.all(Array.from({ length: width }, () => bed.as(key).call(acquire, body)));
    for (const { status } of got) expect([letIn, 429]).toContain(status);
    const refused = got.find(({ status }) => status === 429);
    if (refused) return refused;
  }
  throw new Error("the rate is never used up");
}

test("each request is taken out of the rate once, however its key was judged", async () => {
  const { key } = await bed.make();
  const left = async (operation: string, body?: object): Promise<number> =>
    Number((await bed.as(key).call(operation, body)).headers.get("x-ratelimit-remaining"));
  const first = await left("GET /auth/context");
  const [second, third] = [
    await left(acquire, atOnce),
    await left(acquire, { acquire_timeout_seconds: "no" }),
  ];
  // Some may have come back meanwhile.
  expect(first - second).toBeLessThanOrEqual(1);
  expect(second - third).toBeLessThanOrEqual(1);
  const answer = await refusedAmong(key, atOnce, 204);
  expect([answer.status, answer.body.code]).toEqual([429, "rate_limit_exceeded"]);
  expect(answer.headers.get("x-ratelimit-remaining")).toBe("0");
  expect(Number(answer.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
  // So is what is refused for another reason, under a key whose rate nothing else has used up.
  const wrong = (await bed.make()).key;
  const invalid = { acquire_timeout_seconds: "no" };
  expect((await bed.as(wrong).call(acquire, invalid)).status).toBe(400);
  expect((await refusedAmong(wrong, invalid, 400)).status).toBe(429);
});

/** What an acquire or a release may come to before its script, and by it. */
const asked: readonly (readonly [string, string, object])[] = [
  ["an acquire", acquire, atOnce],
  ["an acquire that would wait", acquire, {}],
  ["an acquire by a name of its own", acquire, { ...atOnce, name: "mine" }],
  ["an acquire of no pool", "POST /browser_pools/nowhere/acquire", atOnce],
  ["an acquire that is not valid", acquire, { acquire_timeout_seconds: "soon" }],
  ["an acquire of a page that no browser may open", acquire, { ...atOnce, start_url: "file:///etc" }],
  ["a release", release, gone],
  ["a release of no pool", "POST /browser_pools/nowhere/release", gone],
  ["a release that is not valid", release, {}],
];

const end = {
  deleted: ({ id }: MadeKey) => bed.root.call(`DELETE /org/api_keys/${id}`),
  rotated: ({ id }: MadeKey) => bed.root.call(`POST /org/api_keys/${id}/rotate`, { expire_in_days: 0 }),
};

test.each(Object.entries(end))(
  "a key that was %s behind a control's back does nothing there",
  async (_, work) => {
    for (const [what, operation, body] of asked) {
      const made = await knownKey();
      expect((await work(made)).status).toBeLessThan(300);
      const got = await bed.as(made.key).call(operation, body);
      expect([what, got.status, got.body]).toEqual([
        what,
        401,
        { code: "unauthorized", message: expect.any(String) as string },
      ]);
      expect(got.headers.get("www-authenticate")).toBe('Bearer error="invalid_token"');
      expect(got.headers.get("x-ratelimit-limit")).toBeNull();
    }
    const { body } = await bed.root.call("GET /browser_pools/herd");
    expect(body).toMatchObject({ acquired_count: 0, waiting_count: 0 });
    // Its name was taken by nobody.
    expect((await bed.root.call(acquire, { ...atOnce, name: "mine" })).status).toBe(204);
  },
);

test("what such a key has asked is recorded as that of somebody unknown", async () => {
  const made = await knownKey();
  await end.deleted(made);
  await bed.as(made.key).call("POST /browser_pools/of-nobody/acquire", atOnce);
  const day = {
    start: new Date(Date.now() - 3_600_000).toISOString(),
    end: new Date(Date.now() + 3_600_000).toISOString(),
  };
  const entries = async () => {
    const page = await bed.kernel.auditLogs.list({ ...day, search: "/browser_pools/of-nobody" });
    return page
      .getPaginatedItems()
      .map(({ status, auth_strategy, user_id }) => ({ status, auth_strategy, user_id }));
  };
  await expect.poll(entries).toEqual([{ status: 401, auth_strategy: "none", user_id: "" }]);
});

test("a project that was archived behind a control's back lends nothing there", async () => {
  const { body } = await bed.root.call("POST /org/projects", { name: "to be archived" });
  const project = String(body.id);
  const own = await knownKey({ project_id: project });
  const wide = await bed.make();
  const header = { "x-kernel-project-id": project };
  expect((await bed.as(wide.key).call("GET /auth/context", undefined, header)).status).toBe(200);
  expect((await bed.root.call(`PATCH /org/projects/${project}`, { status: "archived" })).status).toBe(200);
  const got = [
    await bed.as(own.key).call(acquire, atOnce),
    await bed.as(wide.key).call(acquire, atOnce, header),
    await bed.as(wide.key).call(acquire, atOnce),
  ];
  expect(got.map((one) => [one.status, (one.body as { code?: string } | undefined)?.code])).toEqual([
    [404, "project_not_found"],
    [404, "project_not_found"],
    [204, undefined],
  ]);
});
