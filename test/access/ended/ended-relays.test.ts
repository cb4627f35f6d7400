import { createServer, type Server } from "node:http";
import { afterEach, beforeEach, expect, test } from "vitest";
import { DaemonClient, type Lease } from "../../support/daemon/daemon.js";
import type { DaemonProcess } from "../../support/daemon/daemon-process.js";
import { Fleet, type FleetNode } from "../../support/daemon/fleet.js";
import { closeServer, listenLocally } from "../../support/egress/local-server.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import { failed } from "../../support/http/http-server.js";
import { openRedisProxy, type RedisProxy } from "../../support/store/redis-proxy.js";

// On a busy machine nobody is lost who is only slow; one node stands still for a while.
const patient = {
  acquire: { control_lost_after_ms: 60_000, provisional_seconds: 60 },
  node: { lost_after_ms: 60_000 },
};
let fleet: Fleet;
/** The second control's way to Redis. */
let proxy: RedisProxy;
let controls: readonly [DaemonProcess, DaemonProcess];
let node: FleetNode;
let site: Server;
let origin: string;
/** What the site was asked for; it answers nothing. */
let asked: string[];

beforeEach(async () => {
  asked = [];
  site = createServer(({ url = "" }) => void asked.push(url));
  origin = `http://${await listenLocally(site)}`;
  fleet = await Fleet.open();
  proxy = await openRedisProxy(fleet.redis.url);
});
afterEach(async () => {
  await fleet.close();
  await proxy.close();
  await closeServer(site);
});

async function start(access: object = {}): Promise<void> {
  const file = { ...patient, access };
  controls = [await fleet.control(file), await fleet.control(file, proxy.url)];
  node = await fleet.node("one", patient);
  await controls[0].makePool({ name: "herd", size: 1, telemetry: { enabled: true } });
}

/** A key, who shows it at the second control, and the lease that they have taken there. */
async function takeLease() {
  const { body } = await controls[0].call("POST /org/api_keys", { name: "made" });
  const [id, text] = [body.id as string, body.key as string];
  const client = new DaemonClient(controls[1].url, text);
  const lease = await client.call("POST /browser_pools/herd/acquire", { acquire_timeout_seconds: 30 });
  if (lease.status !== 200) throw new Error(`no lease: ${lease.text}`);
  return { id, client, lease: lease.body as Lease };
}
type Taken = Awaited<ReturnType<typeof takeLease>>;

/** A request of the browser's that is under way at its node; gives how it ends. */
async function beginCurl(
  { client, lease }: Taken,
  path: string,
): Promise<{ readonly ended: Promise<unknown> }> {
  const body = { url: `${origin}${path}`, timeout_ms: 60_000 };
  const ended = failed(client.call(`POST /browsers/${lease.session_id}/curl`, body));
  await expect.poll(() => asked).toContain(path);
  return { ended };
}

/** A stream of events that has begun; `ended` is how it ends. */
async function beginStream({ client, lease }: Taken): Promise<{ readonly ended: Promise<unknown> }> {
  const url = `${client.url}/browsers/${lease.session_id}/telemetry/stream?replay=all`;
  const response = await fetch(url, { headers: { authorization: `Bearer ${client.apiKey}` } });
  expect(response.status).toBe(200);
  return { ended: failed(response.text()) };
}

const statusesOf = async ({ client }: Taken): Promise<readonly number[]> =>
  await Promise.all(
    controls.map(
      async ({ url }) => (await new DaemonClient(url, client.apiKey).call("GET /auth/context")).status,
    ),
  );

test("what a key has under way ends with it at another control, while the node stands still; the lease goes on", async () => {
  await start();
  const taken = await takeLease();
  const socket = await connectRaw(taken.lease.cdp_ws_url);
  const [stream, curl] = [await beginStream(taken), await beginCurl(taken, "/a")];
  node.daemon.signal("SIGSTOP");
  // It expires now: nobody deletes it.
  const rotated = await controls[0].call(`POST /org/api_keys/${taken.id}/rotate`, { expire_in_days: 0 });
  expect(rotated.status).toBe(201);
  expect(await statusesOf(taken)).toEqual([401, 401]);
  expect(await stream.ended).toBeInstanceOf(TypeError);
  expect(await curl.ended).toBeInstanceOf(TypeError);
  node.daemon.signal("SIGCONT");
  expect((await socket.send("Browser.getVersion")).result).toBeDefined();
  await socket.close();
});

test("a control that was cut from Redis lets nobody in meanwhile, and ends what has ended when it is back", async () => {
  await start();
  const taken = await takeLease();
  const stream = await beginStream(taken);
  await proxy.cut();
  expect((await controls[0].call(`DELETE /org/api_keys/${taken.id}`)).status).toBe(204);
  expect(await statusesOf(taken)).toEqual([401, 503]);
  expect(await Promise.race([stream.ended, "under way"])).toBe("under way");
  await proxy.restore();
  expect(await stream.ended).toBeInstanceOf(TypeError);
  await expect.poll(() => statusesOf(taken)).toEqual([401, 401]);
});

test("where leases end with their keys, that of a node that stands still ends too, and its sockets when it goes on", async () => {
  await start({ end_leases_of_deleted_keys: true });
  const taken = await takeLease();
  const socket = await connectRaw(taken.lease.cdp_ws_url);
  expect(new URL(taken.lease.cdp_ws_url).host).toBe(new URL(controls[1].url).host);
  node.daemon.signal("SIGSTOP");
  expect((await controls[0].call(`DELETE /org/api_keys/${taken.id}`)).status).toBe(204);
  const get = `GET /browsers/${taken.lease.session_id}`;
  await expect.poll(async () => (await controls[0].call(get)).status).toBe(404);
  node.daemon.signal("SIGCONT");
  expect((await socket.closed).code).toBe(4410);
  const own = taken.lease.cdp_ws_url.replace(/^ws/, "http").replace("/cdp?", "/curl?");
  const late = await fetch(own, { method: "POST", body: JSON.stringify({ url: origin }) });
  expect(late.status).toBe(410);
});
