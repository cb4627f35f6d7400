import { afterEach, beforeEach, expect } from "vitest";
import { organizationKey } from "../../../src/store/redis/keys.js";
import { DaemonClient } from "../../support/daemon/daemon.js";
import type { DaemonProcess } from "../../support/daemon/daemon-process.js";
import { Fleet } from "../../support/daemon/fleet.js";
import { fault, startWatch } from "../../support/faults/fault.js";

const projects = { enabled: true };
/** Less than is asked for at once: pools of 2 and 3, one more of 2, and a session on demand. */
const limits = { pooled_sessions: 4, concurrent_sessions: 4 };
const mostOfProject = 3;
let fleet: Fleet;
let redis: ReturnType<Fleet["redis"]["client"]>;
let controls: readonly [DaemonProcess, DaemonProcess];
let id: string;
const inIt = () => ({ "x-kernel-project-id": id });
const call = (at: 0 | 1, operation: string, body?: unknown) => controls[at].call(operation, body, inIt());
const setStatus = (at: 0 | 1, status: "active" | "archived") =>
  controls[at].call(`PATCH /org/projects/${id}`, { status });

beforeEach(async () => {
  fleet = await Fleet.open();
  redis = fleet.redis.client();
  controls = [await fleet.control({ projects, limits }), await fleet.control({ projects, limits })];
  await fleet.node("one", { projects });
  id = String((await controls[0].call("POST /org/projects", { name: "contested" })).body.id);
});
afterEach(async () => {
  redis.disconnect();
  await fleet.close();
});

/** How often a limit was what something was refused for. */
let bound = 0;

/** Browsers that are held of the limits at this moment: of pools, of sessions on demand, of the project. */
async function held(): Promise<{ pooled: number; all: number; ofProject: number }> {
  const usage = await redis.hgetall(organizationKey("usage"));
  const of = (field: string): number => Number(usage[field] ?? 0);
  return {
    pooled: of("pool"),
    all: of("pool") + of("session"),
    ofProject: of(`pool ${id}`) + of(`session ${id}`),
  };
}
async function expectWithin(): Promise<void> {
  const { pooled, all, ofProject } = await held();
  expect(pooled).toBeLessThanOrEqual(limits.pooled_sessions);
  expect(all).toBeLessThanOrEqual(limits.concurrent_sessions);
  expect(ofProject).toBeLessThanOrEqual(mostOfProject);
}

/**
 * Everything that is asked for at once; what is refused, or answered by nobody, is no fault. Where the
 * project stays open, only the limits are in the way.
 */
async function contend(round: number, key: DaemonClient, closes: boolean): Promise<readonly number[]> {
  const pool = { name: `herd-${round}`, size: 2, headless: true };
  const asked = [
    call(0, "POST /browser_pools", pool),
    call(1, "POST /browsers", { headless: true, timeout_seconds: 3600 }),
    ...(closes ? [setStatus(1, "archived")] : []),
    key.call("POST /browser_pools", { ...pool, name: `flock-${round}` }),
    ...(closes ? [setStatus(0, "archived")] : []),
    call(1, `POST /browser_pools/herd-${round}/acquire`, { acquire_timeout_seconds: 1 }),
    key.call(`PATCH /browser_pools/herd-${round}`, { size: 3 }),
  ];
  return await Promise.all(asked.map(statusOf));
}

/** 0 where nobody has answered. After each answer the limits are looked at. */
async function statusOf(asked: ReturnType<typeof call>): Promise<number> {
  const got = await asked.catch(() => undefined);
  if (got === undefined) return 0;
  await expectWithin();
  if (got.body?.code === "limit_exceeded") bound += 1;
  return got.status;
}

/** What is free of the limits may all be had, and nothing beyond it. */
async function takeAll(at: 0 | 1): Promise<void> {
  const one = { size: 1, headless: true };
  for (let left = mostOfProject - (await held()).ofProject; left > 0; left -= 1)
    expect(await call(at, "POST /browser_pools", one)).toMatchObject({ status: 201 });
  const refused = { status: 403, body: { code: "limit_exceeded" } };
  expect(await call(at, "POST /browser_pools", one)).toMatchObject(refused);
  for (let left = limits.pooled_sessions - (await held()).pooled; left > 0; left -= 1)
    expect(await controls[at].call("POST /browser_pools", one)).toMatchObject({ status: 201 });
  expect(await controls[at].call("POST /browser_pools", one)).toMatchObject(refused);
}

async function running(): Promise<number> {
  const pools = await redis.hvals(`remuda:{project-${id}}:pools`);
  const partitions = await redis.keys(`remuda:${id}:*:leased`);
  const leased = await Promise.all(partitions.map((key) => redis.zcard(key)));
  return pools.filter((state) => state === "open").length + leased.reduce((sum, count) => sum + count, 0);
}

/** Ends all there is, in the project and in the default one; nothing is held then. */
async function clear(at: 0 | 1): Promise<void> {
  for (const headers of [inIt(), {}]) {
    const there = (operation: string, body?: unknown) => controls[at].call(operation, body, headers);
    for (const { id: pool } of (await there("GET /browser_pools?limit=100")).body)
      expect((await there(`DELETE /browser_pools/${pool}`, { force: true })).status).toBe(204);
    for (const { session_id: session } of (await there("GET /browsers?limit=100")).body)
      await there(`DELETE /browsers/${session}`);
  }
  await expect.poll(held, { timeout: 20_000 }).toEqual({ pooled: 0, all: 0, ofProject: 0 });
}

fault(
  "a control dies (SIGKILL) while a project is archived beside creations at two controls",
  async (tell) => {
    const { body } = await controls[0].call("POST /org/api_keys", { name: "its own", project_id: id });
    const key = new DaemonClient(controls[1].url, String(body.key));
    const ownLimit = { max_concurrent_sessions: mostOfProject };
    expect((await controls[0].call(`PATCH /org/projects/${id}/limits`, ownLimit)).status).toBe(200);
    for (let round = 0; round < 12; round += 1) {
      const statuses = await contend(round, key, round % 3 !== 2);
      expect(statuses).not.toContain(500);
      const { status } = (await controls[0].call(`GET /org/projects/${id}`)).body;
      if (status === "archived") {
        await expect.poll(running, { timeout: 20_000 }).toBe(0);
        await expect.poll(held, { timeout: 20_000 }).toEqual({ pooled: 0, all: 0, ofProject: 0 });
        expect([403, 404]).toContain((await key.call("GET /browser_pools")).status);
        expect((await setStatus(1, "active")).status).toBe(200);
      } else await clear(1);
      await takeAll(1);
      await clear(1);
    }
    expect(bound).toBeGreaterThan(0);
    const last = contend(99, key, true);
    await fleet.kill(controls[0]);
    await last;
    const watch = startWatch();
    const other = controls[1];
    await expect
      .poll(async () => (await other.call(`PATCH /org/projects/${id}`, { status: "active" })).status)
      .toBe(200);
    await clear(1);
    const gone = async (): Promise<number> => (await other.call(`DELETE /org/projects/${id}`)).status;
    await expect.poll(gone, { timeout: 30_000 }).toBe(204);
    await expect.poll(() => redis.hlen(organizationKey("reservations")), { timeout: 60_000 }).toBe(0);
    await expect.poll(running, { timeout: 20_000 }).toBe(0);
    expect((await key.call("GET /browser_pools")).status).toBe(404);
    tell({
      saw: `404 or 409, ${bound} times 403 for a limit; nothing is left of the project, nor reserved`,
      recoveryMs: watch.since(),
    });
  },
  600_000,
);
