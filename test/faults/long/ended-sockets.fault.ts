import { afterEach, beforeEach, expect } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import { DaemonClient, type Lease } from "../../support/daemon/daemon.js";
import { type DaemonProcess, spawnDaemon } from "../../support/daemon/daemon-process.js";
import { DaemonPlace } from "../../support/daemon/daemon-settings.js";
import { Fleet } from "../../support/daemon/fleet.js";
import { connectBidi } from "../../support/gateway/raw-bidi.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import { mappersOf } from "../../support/gateway/mappers.js";
import { failed } from "../../support/http/http-server.js";
import { fault, startWatch } from "../../support/faults/fault.js";

// Nobody is lost who only stands still for a while.
const patient = {
  acquire: { control_lost_after_ms: 60_000, provisional_seconds: 60 },
  node: { lost_after_ms: 60_000 },
};
const file = { ...patient, access: { end_leases_of_deleted_keys: true } };
let fleet: Fleet;
let controls: readonly [DaemonProcess, DaemonProcess];
let node: DaemonProcess;
beforeEach(async () => {
  fleet = await Fleet.open();
  controls = [await fleet.control(file), await fleet.control(file)];
  node = await spawnDaemon(
    new DaemonPlace({
      role: "node",
      redisUrl: fleet.redis.url,
      file: { ...patient, drain: { limit_seconds: 0 } },
    }),
  );
});
afterEach(async () => {
  fleet.redis.signal("SIGCONT");
  node.signal("SIGCONT");
  await node.stop();
  await fleet.close();
});

/** The same URL at another daemon. */
const at = (url: string, { url: other }: DaemonClient): string => {
  const moved = new URL(url);
  moved.host = new URL(other).host;
  return moved.href;
};

/** What is open with a key, at both controls, and how each of it ends. */
async function openAll(client: DaemonClient, lease: Lease) {
  const ends: Promise<unknown>[] = [];
  for (const control of controls) {
    const cdp = await connectRaw(at(lease.cdp_ws_url, control));
    expect((await cdp.send("Browser.getVersion")).result).toBeDefined();
    const bidi = await connectBidi(at(lease.webdriver_ws_url, control));
    await bidi.begin();
    ends.push(
      cdp.closed.then(({ code }) => code),
      bidi.closed.then(({ code }) => code),
    );
    const here = `${control.url}/browsers/${lease.session_id}/telemetry`;
    const headers = { authorization: `Bearer ${client.apiKey}` };
    const stream = await fetch(`${here}/stream?replay=all`, { headers });
    expect(stream.status).toBe(200);
    ends.push(failed(stream.text()));
  }
  return ends;
}
/** How `POST /session` is answered. */
const classic = async (lease: Lease, control: DaemonClient): Promise<number> => {
  const url = at(lease.webdriver_ws_url, control).replace(/^ws/, "http");
  const body = JSON.stringify({ capabilities: { alwaysMatch: { webSocketUrl: true } } });
  return (await fetch(url, { method: "POST", body, signal: AbortSignal.timeout(20_000) })).status;
};

interface StandsStill {
  signal(signal: "SIGSTOP" | "SIGCONT"): void;
}
const stillMs = 3000;

/** The key is deleted at one of the two controls; gives how long after that all was over. */
async function endWhileStill(who: StandsStill, deleter: DaemonProcess): Promise<number> {
  await controls[0].makePool({ name: "herd", size: 1, telemetry: { enabled: true } });
  const { body } = await controls[0].call("POST /org/api_keys", { name: "made" });
  const client = new DaemonClient(controls[1].url, String(body.key));
  const lease = (await client.call("POST /browser_pools/herd/acquire", {})).body as Lease;
  const ask = () => Promise.all(controls.map((control) => classic(lease, control)));
  expect(await ask()).toEqual([200, 200]);
  const ends = await openAll(client, lease);
  expect((await deleter.call(`DELETE /org/api_keys/${body.id}`)).status).toBe(204);
  who.signal("SIGSTOP");
  const goesOnAt = performance.now() + stillMs;
  await until("some seconds", () => performance.now() > goesOnAt, 2 * stillMs);
  who.signal("SIGCONT");
  const watch = startWatch();
  const how = await Promise.all(ends);
  const tookMs = watch.since();
  expect(how.filter((end) => typeof end === "number")).toEqual([4410, 4410, 4410, 4410]);
  for (const end of how) if (typeof end !== "number") expect(end).toBeInstanceOf(TypeError);
  expect(await ask()).toEqual([410, 410]);
  await expect.poll(() => mappersOf(node.pid), { timeout: 20_000 }).toEqual([]);
  await controls[0].poolWhen("herd", (pool) => pool.available_count === 1);
  return tookMs;
}

const saw = "CDP and BiDi: 4410; streams of events: cut; POST /session: 410";
fault("a key is deleted, and its node stands still for 3 s (SIGSTOP)", async (tell) =>
  tell({ saw, recoveryMs: await endWhileStill(node, controls[0]) }),
);
fault("a key is deleted, and Redis stands still for 3 s (SIGSTOP)", async (tell) =>
  tell({ saw, recoveryMs: await endWhileStill(fleet.redis, controls[1]) }),
);
