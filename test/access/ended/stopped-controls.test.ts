import { afterEach, beforeEach, expect, test } from "vitest";
import { loadScripts } from "../../../src/store/redis/scripts.js";
import { until } from "../../support/browser/chromium-until.js";
import { DaemonClient, type Lease } from "../../support/daemon/daemon.js";
import type { DaemonProcess } from "../../support/daemon/daemon-process.js";
import { Fleet } from "../../support/daemon/fleet.js";
import { openRedisProxy, type RedisProxy } from "../../support/store/redis-proxy.js";

// Nobody is lost who stands still for a while.
const patient = {
  acquire: { control_lost_after_ms: 60_000, provisional_seconds: 60 },
  node: { lost_after_ms: 60_000 },
};
let fleet: Fleet;
/** The second control's way to Redis. */
let proxy: RedisProxy;
let controls: readonly [DaemonProcess, DaemonProcess];

beforeEach(async () => {
  fleet = await Fleet.open();
  proxy = await openRedisProxy(fleet.redis.url);
  controls = [await fleet.control(patient), await fleet.control(patient, proxy.url)];
  await fleet.node("one", patient);
  await controls[0].makePool({ name: "herd", size: 1 });
});
afterEach(async () => {
  await fleet.close();
  await proxy.close();
});

/** A key, and who shows it at the second control. */
async function makeKey() {
  const { body } = await controls[0].call("POST /org/api_keys", { name: "made" });
  const [id, text] = [String(body.id), String(body.key)];
  const client = new DaemonClient(controls[1].url, text);
  // Nothing that is kept there has to be read first by the next acquire.
  const { session_id } = (await client.call("POST /browser_pools/herd/acquire", {})).body as Lease;
  await client.call("POST /browser_pools/herd/release", { session_id });
  await idle();
  return { id, client };
}

/** The second control does nothing from the deletion of the key until some seconds after it. */
async function deleteBehindItsBack(id: string, meanwhile: () => Promise<unknown> = async () => {}) {
  controls[1].signal("SIGSTOP");
  expect((await controls[0].call(`DELETE /org/api_keys/${id}`)).status).toBe(204);
  const deletedAt = performance.now();
  await meanwhile();
  await until("some seconds gone", () => performance.now() - deletedAt > 3000);
  controls[1].signal("SIGCONT");
}

/** The status, none where the connection is closed. */
const statusOf = async (answer: Promise<{ status: number }>): Promise<number> =>
  (await answer.catch(() => ({ status: 0 }))).status;

/** 503: its command stood still on a dead connection for as long as commands may take. */
const refused = [401, 503, 0];
const idle = () =>
  controls[0].poolWhen(
    "herd",
    (pool) => pool.available_count === 1 && pool.acquired_count === 0 && pool.waiting_count === 0,
  );

/** What a request asks last, so that nothing of it is done before. */
const acts: readonly (readonly [script: string, operation: string, body: object])[] = [
  ["acquire-warm", "POST /browser_pools/herd/acquire", {}],
  ["reserve-name", "POST /browser_pools/herd/acquire", { name: "mine" }],
  ["create-session", "POST /browsers", { headless: true, name: "mine" }],
];

test.each(acts)(
  "whose key ended while a control stood still before %s gets no browser by %s",
  async (script, operation, body) => {
    const { id, client } = await makeKey();
    const found = loadScripts().get(script);
    const sha = (found?.judged ?? found)?.sha ?? "";
    const reached = proxy.freezeAt(sha);
    const answer = statusOf(client.call(operation, body));
    await reached;
    await deleteBehindItsBack(id);
    expect(refused).toContain(await answer);
    await idle();
    await expect.poll(async () => (await controls[0].call("GET /browsers")).body).toEqual([]);
    // Its name is free again.
    const next = await controls[0].call("POST /browser_pools/herd/acquire", { name: "mine" });
    expect(next.status).toBe(200);
  },
);

test("whose key ended while they waited at a control that stood still gets no browser", async () => {
  const { id, client } = await makeKey();
  const held = (await controls[0].call("POST /browser_pools/herd/acquire", {})).body as Lease;
  const answer = statusOf(client.call("POST /browser_pools/herd/acquire", { acquire_timeout_seconds: 50 }));
  await controls[0].poolWhen("herd", ({ waiting_count }) => waiting_count === 1);
  await deleteBehindItsBack(id, async () => {
    const { session_id } = held;
    const released = await controls[0].call("POST /browser_pools/herd/release", { session_id });
    expect(released.status).toBe(204);
    await controls[0].poolWhen("herd", (pool) => pool.waiting_count === 0 && pool.acquired_count === 1);
  });
  expect(refused).toContain(await answer);
  await idle();
});
