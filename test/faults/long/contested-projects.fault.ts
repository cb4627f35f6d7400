import { afterEach, beforeEach, expect } from "vitest";
import { DaemonClient } from "../../support/daemon/daemon.js";
import type { DaemonProcess } from "../../support/daemon/daemon-process.js";
import { Fleet } from "../../support/daemon/fleet.js";
import { fault, startWatch } from "../fault.js";

const projects = { enabled: true };
const limits = { pooled_sessions: 1000, concurrent_sessions: 1000 };
let fleet: Fleet;
let controls: readonly [DaemonProcess, DaemonProcess];
let id: string;
const inIt = () => ({ "x-kernel-project-id": id });
const call = (at: 0 | 1, operation: string, body?: unknown) => controls[at].call(operation, body, inIt());
const setStatus = (at: 0 | 1, status: "active" | "archived") =>
  controls[at].call(`PATCH /org/projects/${id}`, { status });

beforeEach(async () => {
  fleet = await Fleet.open();
  controls = [await fleet.control({ projects, limits }), await fleet.control({ projects, limits })];
  await fleet.node("one", { projects });
  id = String((await controls[0].call("POST /org/projects", { name: "contested" })).body.id);
});
afterEach(() => fleet.close());

/** Everything that is asked for at once; what is refused, or answered by nobody, is no fault. */
async function contend(round: number, key: DaemonClient): Promise<readonly number[]> {
  const pool = { name: `herd-${round}`, size: 2, headless: true };
  const asked = [
    call(0, "POST /browser_pools", pool),
    call(1, "POST /browsers", { headless: true, timeout_seconds: 3600 }),
    setStatus(1, "archived"),
    controls[0].call(`PATCH /org/projects/${id}/limits`, { max_concurrent_sessions: 50 + round }),
    key.call("POST /browser_pools", { ...pool, name: `flock-${round}` }),
    setStatus(0, "archived"),
    call(1, `POST /browser_pools/herd-${round}/acquire`, { acquire_timeout_seconds: 1 }),
    key.call(`PATCH /browser_pools/herd-${round}`, { size: 3 }),
  ];
  return await Promise.all(
    asked.map((one) =>
      one.then(
        ({ status }) => status,
        () => 0,
      ),
    ),
  );
}

async function running(): Promise<number> {
  const redis = fleet.redis.client();
  const pools = await redis.hvals(`remuda:{project-${id}}:pools`);
  const partitions = await redis.keys(`remuda:${id}:*:leased`);
  const leased = await Promise.all(partitions.map((key) => redis.zcard(key)));
  redis.disconnect();
  return pools.filter((state) => state === "open").length + leased.reduce((sum, count) => sum + count, 0);
}

async function clear(at: 0 | 1): Promise<void> {
  for (const { id: pool } of (await call(at, "GET /browser_pools?limit=100")).body)
    expect((await call(at, `DELETE /browser_pools/${pool}`, { force: true })).status).toBe(204);
  for (const { session_id: session } of (await call(at, "GET /browsers?limit=100")).body)
    await call(at, `DELETE /browsers/${session}`);
}

fault(
  "a control dies (SIGKILL) while a project is archived beside creations at two controls",
  async (tell) => {
    const { body } = await controls[0].call("POST /org/api_keys", { name: "its own", project_id: id });
    const key = new DaemonClient(controls[1].url, String(body.key));
    for (let round = 0; round < 12; round += 1) {
      const statuses = await contend(round, key);
      expect(statuses).not.toContain(500);
      const { status } = (await controls[0].call(`GET /org/projects/${id}`)).body;
      if (status === "archived") {
        await expect.poll(running, { timeout: 20_000 }).toBe(0);
        expect([403, 404]).toContain((await key.call("GET /browser_pools")).status);
        expect((await setStatus(1, "active")).status).toBe(200);
      } else await clear(1);
    }
    const last = contend(99, key);
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
    const redis = fleet.redis.client();
    await expect.poll(() => redis.hlen("remuda:{organization}:reservations"), { timeout: 60_000 }).toBe(0);
    await expect.poll(running, { timeout: 20_000 }).toBe(0);
    redis.disconnect();
    expect((await key.call("GET /browser_pools")).status).toBe(404);
    tell({ saw: "404 or 409; nothing is left of the project, nor reserved", recoveryMs: watch.since() });
  },
);
