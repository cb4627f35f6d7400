import { expect, test } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import { type Lease, startDaemon } from "../../support/daemon/daemon.js";
import { spawnDaemon } from "../../support/daemon/daemon-process.js";
import { DaemonPlace } from "../../support/daemon/daemon-settings.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import { startRedis } from "../../support/store/redis.js";

// Whoever stands still here is not to be taken for lost.
const patient = {
  node: { beat_period_ms: 500, lost_after_ms: 60_000 },
  acquire: { control_beat_period_ms: 500, control_lost_after_ms: 60_000 },
};

test("a change that the node does not answer is 503 and stands in the record; the node captures as before until it hears of it", async () => {
  const redis = await startRedis();
  const control = await startDaemon({ role: "control", redisUrl: redis.url, file: patient });
  const node = await spawnDaemon(
    new DaemonPlace({ role: "node", redisUrl: redis.url, file: { ...patient, drain: { limit_seconds: 0 } } }),
  );
  await control.makePool({ name: "herd", telemetry: { browser: { control: { enabled: false } } } });
  const lease = (await control.call("POST /browser_pools/herd/acquire", { acquire_timeout_seconds: 30 }))
    .body as Lease;
  const path = `/browsers/${lease.session_id}`;
  const client = await connectRaw(
    lease.cdp_ws_url.replace(new URL(control.url).host, new URL(node.url).host),
  );
  const activate = () => client.send("Target.activateTarget", { targetId: "there-is-none" });
  const commands = async (): Promise<readonly number[]> => {
    const { body } = await control.call(`GET ${path}/telemetry/events?type=cdp_command&limit=100&since=1h`);
    return (body as { event: { data: { command_id: number } } }[]).map(({ event }) => event.data.command_id);
  };
  await activate();

  node.signal("SIGSTOP");
  const answer = await control.call(`PATCH ${path}`, {
    telemetry: { browser: { control: { enabled: true } } },
  });
  expect(answer).toMatchObject({
    status: 503,
    body: { code: "node_silent", message: expect.stringContaining("not in force yet") as string },
  });
  expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
  // The record says what was asked for last, and what happens meanwhile is not told as if it were in force.
  expect((await control.call(`GET ${path}`)).body.telemetry.browser.control).toEqual({ enabled: true });
  expect(await commands()).toEqual([]);
  node.signal("SIGCONT");
  const told = await until("a command is told", async () => {
    await activate();
    const ids = await commands();
    return ids.length > 0 ? ids : undefined;
  });
  // The first went before anything was asked for.
  expect(told).not.toContain(1);
  await client.close();
  await node.stop();
  await control.stop();
  await redis.stop();
});
