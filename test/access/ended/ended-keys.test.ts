import { expect, test } from "vitest";
import { DaemonClient, type Lease } from "../../support/daemon/daemon.js";
import type { DaemonProcess } from "../../support/daemon/daemon-process.js";
import { Fleet } from "../../support/daemon/fleet.js";

let fleet: Fleet;
let controls: readonly DaemonProcess[];
const control = (at: number): DaemonProcess => controls[at] as DaemonProcess;
const root = (at = 0): DaemonClient => new DaemonClient(control(at).url);
async function open(): Promise<void> {
  fleet = await Fleet.open();
  // Nobody is lost here: on a busy machine a control that is silent for 2 s would lose its waiters and
  // leases.
  const patient = {
    acquire: { control_lost_after_ms: 60_000, provisional_seconds: 60, max_wait_seconds: 300 },
    node: { lost_after_ms: 60_000 },
  };
  const file = { access: { end_leases_of_deleted_keys: true }, ...patient };
  controls = [await fleet.control(file), await fleet.control(file)];
  await fleet.node("one", patient);
  await root().makePool({ name: "herd", size: 3 });
}

async function makeKey(at: number): Promise<{ id: string; client: DaemonClient }> {
  const { body } = await root().call("POST /org/api_keys", { name: "made" });
  return { id: body.id as string, client: new DaemonClient(control(at).url, body.key as string) };
}
async function acquire(client: DaemonClient): Promise<Lease> {
  const { status, body, text } = await client.call("POST /browser_pools/herd/acquire", {});
  if (status !== 200) throw new Error(`no lease: ${text}`);
  return body as Lease;
}
const isHeld = async ({ session_id: id }: Lease): Promise<boolean> =>
  (await root().call(`GET /browsers/${id}`)).status === 200;

async function expectLeasesEnd(): Promise<void> {
  const [deleted, rotated, kept] = [await makeKey(0), await makeKey(1), await makeKey(1)];
  const [first, second, third] = [
    await acquire(deleted.client),
    await acquire(rotated.client),
    await acquire(kept.client),
  ];
  const launched = (await deleted.client.call("POST /browsers", { headless: true })).body as Lease;
  const own = (await root().call("POST /browsers", { headless: true })).body as Lease;

  expect((await root(1).call(`DELETE /org/api_keys/${deleted.id}`)).status).toBe(204);
  await expect.poll(() => isHeld(first)).toBe(false);
  await expect.poll(() => isHeld(launched)).toBe(false);
  const rotate = `POST /org/api_keys/${rotated.id}/rotate`;
  // It keeps what it holds as long as it is let in.
  expect((await root().call(rotate, { expire_in_days: 1 })).status).toBe(201);
  expect(await isHeld(second)).toBe(true);
  expect((await root().call(rotate, { expire_in_days: 0 })).status).toBe(201);
  await expect.poll(() => isHeld(second)).toBe(false);

  expect(await Promise.all([isHeld(third), isHeld(own)])).toEqual([true, true]);
  const pool = await root().poolWhen("herd", (herd) => herd.available_count === 2);
  expect(pool.acquired_count).toBe(1);
  await kept.client.call("POST /browser_pools/herd/release", { session_id: third.session_id });
}

async function expectWaitEnds(): Promise<void> {
  const waiter = await makeKey(1);
  await root().poolWhen("herd", (herd) => herd.available_count === 3);
  for (let count = 0; count < 3; count += 1) await acquire(root());
  // A wait that names no time lasts as long as the pool takes to fill, a second here, and is then answered.
  const asked = { acquire_timeout_seconds: 300 };
  const waiting = waiter.client.call("POST /browser_pools/herd/acquire", asked).then(
    ({ status, text }) => `${status} ${text}`,
    (error: unknown) => error,
  );
  await root().poolWhen("herd", (herd) => herd.waiting_count === 1);
  expect((await root().call(`DELETE /org/api_keys/${waiter.id}`)).status).toBe(204);
  expect(await waiting).toBeInstanceOf(TypeError);
  await root().poolWhen("herd", (herd) => herd.waiting_count === 0);
}

// One test, since daemons end with the test that has started them.
test("what a key holds ends with it, and nobody else's: its leases, and its wait at another control", async () => {
  await open();
  try {
    await expectLeasesEnd();
    await expectWaitEnds();
  } finally {
    await fleet.close();
  }
  // Two controls, a node and five launches of Chromium.
}, 300_000);
