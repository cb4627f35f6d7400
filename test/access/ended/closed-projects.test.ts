import { afterEach, beforeEach, expect, test } from "vitest";
import { DaemonClient } from "../../support/daemon/daemon.js";
import type { DaemonProcess } from "../../support/daemon/daemon-process.js";
import { Fleet } from "../../support/daemon/fleet.js";

// Whoever is slow on a busy machine is not lost.
const patient = {
  acquire: { control_lost_after_ms: 60_000, provisional_seconds: 60 },
  node: { lost_after_ms: 60_000 },
};
let fleet: Fleet;
let control: DaemonProcess;
beforeEach(async () => {
  fleet = await Fleet.open();
  control = await fleet.control({
    ...patient,
    projects: { enabled: true },
    limits: { pooled_sessions: 100, concurrent_sessions: 100 },
  });
  await fleet.node("one", { ...patient, projects: { enabled: true } });
});
afterEach(() => fleet.close());

interface Opened {
  readonly id: string;
  /** Asks in the project. */
  call(operation: string, body?: unknown): ReturnType<DaemonClient["call"]>;
}

async function openProject(name: string): Promise<Opened> {
  const { body } = await control.call("POST /org/projects", { name });
  const id = String(body.id);
  return { id, call: (operation, sent) => control.call(operation, sent, { "x-kernel-project-id": id }) };
}

/** A pool with a browser that is lent, and a session on demand. */
async function fill({ call }: Opened): Promise<void> {
  expect((await call("POST /browser_pools", { name: "herd", size: 2, headless: true })).status).toBe(201);
  const asked = { acquire_timeout_seconds: 60 };
  expect((await call("POST /browser_pools/herd/acquire", asked)).status).toBe(200);
  expect((await call("POST /browsers", { headless: true, timeout_seconds: 3600 })).status).toBe(200);
}

const projects = "remuda:{access}:projects";
/**
 * As a control leaves it that is killed after it has made something in a project that was closed meanwhile.
 */
async function closeOver({ id }: Opened, as: "archived" | "deleted"): Promise<void> {
  const redis = fleet.redis.client();
  const record = JSON.parse((await redis.hget(projects, id)) ?? "{}") as { name: string; updatedAt: number };
  const at = record.updatedAt - 600_000;
  await redis.srem("remuda:{access}:activeProjects", id);
  if (as === "archived")
    await redis.hset(projects, id, JSON.stringify({ ...record, status: "archived", updatedAt: at }));
  else {
    await redis.hdel(projects, id);
    await redis.hdel("remuda:{access}:projectNames", record.name);
    await redis.zadd("remuda:{access}:deletedProjects", at, id);
  }
  redis.disconnect();
}

/** The browsers of the project that its partitions name. */
async function browsersLeft({ id }: Opened): Promise<number> {
  const redis = fleet.redis.client();
  const keys = await redis.keys(`remuda:${id}:*:browsers`);
  const counts = await Promise.all(keys.map((key) => redis.hlen(key)));
  redis.disconnect();
  return counts.reduce((sum, count) => sum + count, 0);
}

/** How many pools and sessions on demand the account of the organization holds something for. */
async function reserved(): Promise<number> {
  const redis = fleet.redis.client();
  const count = await redis.hlen("remuda:{organization}:reservations");
  redis.disconnect();
  return count;
}

test("what a killed control has made in a closed project ends, and nothing of any other", async () => {
  const [archived, deleted, beside] = [
    await openProject("archived"),
    await openProject("deleted"),
    await openProject("beside"),
  ];
  for (const project of [archived, deleted, beside]) await fill(project);
  expect(await reserved()).toBe(6);
  const before = await beside.call("GET /browsers");
  await closeOver(archived, "archived");
  await closeOver(deleted, "deleted");
  for (const project of [archived, deleted])
    await expect.poll(() => browsersLeft(project), { timeout: 60_000 }).toBe(0);
  await expect.poll(reserved, { timeout: 60_000 }).toBe(2);

  expect(await browsersLeft(beside)).toBe(3);
  expect((await beside.call("GET /browsers")).body).toHaveLength(before.body.length);
  expect((await beside.call("GET /browser_pools/herd")).status).toBe(200);

  expect(await control.call(`PATCH /org/projects/${archived.id}`, { status: "active" })).toMatchObject({
    status: 200,
  });
  expect((await archived.call("GET /browser_pools")).body).toEqual([]);
  expect((await archived.call("GET /browsers")).body).toEqual([]);
  // Its name is free again.
  expect((await archived.call("POST /browser_pools", { name: "herd", size: 1 })).status).toBe(201);
  expect((await archived.call("DELETE /browser_pools/herd", { force: true })).status).toBe(204);
  expect((await control.call(`DELETE /org/projects/${archived.id}`)).status).toBe(204);
});

test("who archives a project that somebody else is closing looks into it as well", async () => {
  const project = await openProject("contested");
  const made = await project.call("POST /browser_pools", { name: "herd", size: 1, headless: true });
  expect(made.status).toBe(201);
  const redis = fleet.redis.client();
  const record = JSON.parse((await redis.hget(projects, project.id)) ?? "{}") as { name: string };
  const closing = { name: record.name, status: "active", deadline: Date.now() + 60_000 };
  await redis.hset(projects, project.id, JSON.stringify({ ...record, status: "archived", closing }));
  await redis.srem("remuda:{access}:activeProjects", project.id);
  redis.disconnect();
  expect(await control.call(`PATCH /org/projects/${project.id}`, { status: "archived" })).toMatchObject({
    status: 409,
    body: { code: "project_not_empty" },
  });
});
