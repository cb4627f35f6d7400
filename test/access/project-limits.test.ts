import { BadRequestError, NotFoundError, PermissionDeniedError } from "@onkernel/sdk";
import { expect, test } from "vitest";
import { accessKey, organizationKey } from "../../src/store/redis/keys.js";
import { sharedAccessBed } from "../support/access/access-bed.js";
import { failed, type Got } from "../support/http/http-server.js";

const perMinute = 6;
const bed = sharedAccessBed(2, {
  projects: { enabled: true },
  limits: { concurrent_sessions: 10, creation_rate_per_minute: perMinute },
});
const none = { max_concurrent_sessions: null, max_concurrent_invocations: null, max_pooled_sessions: null };

/** Asks both controls at once, so often in all. */
const burst = (count: number, operation: string, more: { body?: object; project?: string }): Promise<Got[]> =>
  Promise.all(
    Array.from({ length: count }, (_, at) =>
      bed.controls[at % 2]?.call(
        operation,
        more.body,
        more.project === undefined ? {} : { "x-kernel-project-id": more.project },
      ),
    ) as Promise<Got>[],
  );
const poolOf = (size: number) => ({ size, headless: true, fill_rate_per_minute: 0 });
/** How many pools of one browser a project is given when it asks for so many at once. */
async function poolsGiven(project: string, asked: number, whose: string): Promise<number> {
  const got = await burst(asked, "POST /browser_pools", { body: poolOf(1), project });
  const refused = got.filter(({ status }) => status !== 200 && status !== 201);
  for (const { status, body } of refused) {
    expect([status, body.code]).toEqual([403, "limit_exceeded"]);
    expect(body.message).toContain(whose);
  }
  return asked - refused.length;
}

test("the official client reads and sets a project's own limit, and is told what cannot be", async () => {
  const { projects } = bed.kernel;
  const { id } = await projects.create({ name: "own" });
  const { limits } = projects;
  expect(await limits.retrieve(id)).toEqual(none);
  expect(await limits.update("own", { max_concurrent_sessions: 3 })).toEqual({
    ...none,
    max_concurrent_sessions: 3,
  });
  expect(await limits.update(id, {})).toMatchObject({ max_concurrent_sessions: 3 });
  expect(await limits.update(id, { max_concurrent_sessions: null })).toMatchObject({
    max_concurrent_sessions: 3,
  });
  for (const wrong of [
    { max_concurrent_sessions: 11 },
    { max_concurrent_sessions: -1 },
    { max_concurrent_invocations: 1 },
    { max_pooled_sessions: 1 },
  ])
    expect(await failed(limits.update(id, wrong))).toBeInstanceOf(BadRequestError);
  expect((await bed.root.call(`GET /projects/${id}/limits`)).body).toMatchObject({
    max_concurrent_sessions: 3,
  });
  expect(await limits.update(id, { max_concurrent_sessions: 0 })).toEqual(none);
  expect(await failed(limits.retrieve("nobody's"))).toBeInstanceOf(NotFoundError);
  await projects.delete(id);
});

test("a key of one project reads its own limits, changes none, and knows of no other's", async () => {
  const { projects } = bed.kernel;
  const [own, other] = [await projects.create({ name: "mine" }), await projects.create({ name: "theirs" })];
  const { key } = await bed.make({ project_id: own.id });
  const { limits } = bed.as(key).kernel({ maxRetries: 0 }).projects;
  expect(await limits.retrieve(own.id)).toEqual(none);
  expect(await failed(limits.update(own.id, { max_concurrent_sessions: 1 }))).toBeInstanceOf(
    PermissionDeniedError,
  );
  expect(await failed(limits.retrieve(other.id))).toBeInstanceOf(NotFoundError);
  expect(await bed.kernel.projects.limits.retrieve(own.id)).toEqual(none);
  for (const { id } of [own, other]) await projects.delete(id);
});

test("bursts at two controls: each project has its own limit, else the default, and all together the organization's", async () => {
  const { projects, organization } = bed.kernel;
  await organization.limits.update({ default_project_max_concurrent_sessions: 2 });
  const made = [];
  for (const name of ["narrow", "usual", "wide"]) made.push((await projects.create({ name })).id);
  const [narrow = "", usual = "", wide = ""] = made;
  await projects.limits.update(narrow, { max_concurrent_sessions: 3 });
  await projects.limits.update(wide, { max_concurrent_sessions: 10 });
  expect(
    await Promise.all([poolsGiven(narrow, 8, "the project's"), poolsGiven(usual, 8, "the project's")]),
  ).toEqual([3, 2]);
  expect(await poolsGiven(wide, 12, "the organization's limit")).toBe(5);
  expect(await bed.redis.hgetall(organizationKey("usage"))).toMatchObject({ pool: "10" });

  for (const project of made) {
    const { body } = await bed.root.call("GET /browser_pools", undefined, { "x-kernel-project-id": project });
    for (const { id } of body as { id: string }[])
      await bed.root.call(`DELETE /browser_pools/${id}`, {}, { "x-kernel-project-id": project });
  }
  await organization.limits.update({ default_project_max_concurrent_sessions: 0 });
  await expect.poll(() => bed.redis.hgetall(organizationKey("usage"))).toEqual({});
});

test("bursts of POST /browsers at two controls have their rate together", async () => {
  // The organization has all it may have: nothing is launched.
  const { body: pool } = await bed.root.call("POST /browser_pools", poolOf(10));
  const began = performance.now();
  const got = await burst(2 * perMinute, "POST /browsers", { body: { headless: true } });
  const letIn = got.filter(({ body }) => body.code !== "rate_limit_exceeded");
  const refilled = Math.ceil(((performance.now() - began) / 60_000) * perMinute);
  expect(letIn.length).toBeGreaterThanOrEqual(perMinute);
  expect(letIn.length).toBeLessThanOrEqual(perMinute + refilled);
  for (const { status, body } of letIn) expect([status, body.code]).toEqual([429, "too_many_sessions"]);
  await bed.root.call(`DELETE /browser_pools/${pool.id}`, {});
});

test("a project that was deleted is looked after no longer once nothing is left of it", async () => {
  const { projects } = bed.kernel;
  const { id } = await projects.create({ name: "gone" });
  await projects.limits.update(id, { max_concurrent_sessions: 3 });
  await projects.delete(id);
  expect(await bed.redis.zscore(accessKey("deletedProjects"), id)).not.toBeNull();
  const twoHoursAgo = Date.now() - 7_200_000;
  await bed.redis.zadd(accessKey("deletedProjects"), twoHoursAgo, id);
  await expect.poll(() => bed.redis.zscore(accessKey("deletedProjects"), id)).toBeNull();
  expect(await bed.redis.keys(`*${id}*`)).toEqual([]);
  expect(await bed.redis.hexists(organizationKey("limits"), `project ${id}`)).toBe(0);
});

test("what a late request has registered in a deleted project, and could not take back, goes with it", async () => {
  const name = "overtaken";
  const { id } = await bed.kernel.projects.create({ name });
  const there = { "x-kernel-project-id": id };
  const proxy = { type: "custom", config: { host: "proxy.example", port: 3128 } };
  expect((await bed.root.call("POST /profiles", { name: "late" }, there)).status).toBe(201);
  expect((await bed.root.call("POST /proxies", proxy, there)).status).toBe(201);
  // As a deletion leaves it that has looked before they came.
  await bed.redis
    .multi()
    .hdel(accessKey("projects"), id)
    .hdel(accessKey("projectNames"), name)
    .srem(accessKey("activeProjects"), id)
    .zadd(accessKey("deletedProjects"), Date.now() - 7_200_000, id)
    .exec();
  await expect.poll(() => bed.redis.zscore(accessKey("deletedProjects"), id)).toBeNull();
  expect(await bed.redis.keys(`*${id}*`)).toEqual([]);
});
