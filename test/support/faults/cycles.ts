import { expect } from "vitest";
import { until } from "../browser/chromium-until.js";
import type { DaemonClient, Lease } from "../daemon/daemon.js";
import { connectRaw } from "../gateway/raw-cdp.js";
import type { Got } from "../http/http-server.js";
import { startWatch } from "./fault.js";

export const acquire = async (control: DaemonClient): Promise<Lease> => {
  const got = await control.call("POST /browser_pools/herd/acquire", { acquire_timeout_seconds: 20 });
  if (got.status !== 200) throw new Error(`not acquired: ${got.text}`);
  return got.body as Lease;
};
const release = async (control: DaemonClient, { session_id }: Lease): Promise<void> =>
  expect((await control.call("POST /browser_pools/herd/release", { session_id })).status).toBe(204);

/**
 * Asks once more where a busy node has not answered within its 5 s, which callers are told with a 503; that
 * answer is added to `silent`.
 */
export async function answeredByNode(ask: () => Promise<Got>, silent: Got[] = []): Promise<Got> {
  const got = await ask();
  if (got.status !== 503 || got.body?.code !== "node_silent") return got;
  silent.push(got);
  return await ask();
}

/** A cycle with all that passes between a control and a node, whose late answers are added to `silent`. */
export async function expectCycle(control: DaemonClient, silent: Got[] = []): Promise<void> {
  const lease = await acquire(control);
  const client = await connectRaw(lease.cdp_ws_url);
  const change = { network: { allowed_hosts: ["a.example"] }, viewport: { width: 1000, height: 700 } };
  const patch = () => control.call(`PATCH /browsers/${lease.session_id}`, change);
  const patched = await answeredByNode(patch, silent);
  expect(patched.status).toBe(200);
  await release(control, lease);
  expect((await client.closed).code).toBe(4410);
}

/** One that nobody comes under ends after the 10 s that its pool gives it, and not before. */
export async function expectExpiry(control: DaemonClient): Promise<void> {
  const watch = startWatch();
  const lease = await acquire(control);
  const isThere = async () => (await control.call(`GET /browsers/${lease.session_id}`)).status === 200;
  await until("its end", async () => !(await isThere()), 60_000);
  expect(watch.since()).toBeGreaterThan(9900);
}
