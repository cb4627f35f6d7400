import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { expect, onTestFinished } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import type { DaemonClient, Lease } from "../../support/daemon/daemon.js";
import { connectRaw, type RawCdp } from "../../support/gateway/raw-cdp.js";
import { useFaultBed } from "../../support/faults/bed.js";
import { answeredByNode } from "../../support/faults/cycles.js";
import { fault, startWatch } from "../../support/faults/fault.js";

const bed = useFaultBed();
const patient = { node: { id: "far", lost_after_ms: 30_000 } };

async function start(throughProxy: "both" | "node") {
  const control = await bed.start(
    "control",
    patient,
    throughProxy === "node" ? { redisUrl: bed.redis.url } : {},
  );
  const node = await bed.start("node", patient);
  await control.makePool({ name: "herd", size: 2 });
  return { control, node };
}

async function lease(control: DaemonClient): Promise<{ lease: Lease; client: RawCdp }> {
  const got = (await control.call("POST /browser_pools/herd/acquire", { acquire_timeout_seconds: 20 }))
    .body as Lease;
  return { lease: got, client: await connectRaw(got.cdp_ws_url) };
}

const release = (control: DaemonClient, { session_id }: Lease) =>
  control.call("POST /browser_pools/herd/release", { session_id });

fault(
  "every subscription freezes: holders before are cut all the same, and questions are answered",
  async (tell) => {
    const { control } = await start("both");
    const [first, second] = [await lease(control), await lease(control)];
    bed.proxy.freeze("subscriptions");
    const watch = startWatch();
    expect((await release(control, first.lease)).status).toBe(204);
    const viewport = { width: 1000, height: 700 };
    const asked = answeredByNode(() => {
      // A subscription that was made anew meanwhile would bring a repeat.
      bed.proxy.freeze("subscriptions");
      return control.call(`PATCH /browsers/${second.lease.session_id}`, { viewport });
    });
    expect((await first.client.closed).code).toBe(4410);
    const recoveryMs = watch.since();
    expect((await asked).status).toBe(200);
    await control.poolWhen("herd", (pool) => pool.available_count === 1);
    tell({ saw: "the former socket was cut; PATCH 200", recoveryMs });
  },
);

fault(
  "a node is cut off from Redis and not from the control: leases that end are cut, changes of networks are in force",
  async (tell) => {
    const { control, node } = await start("node");
    const [released, deleted] = [await lease(control), await lease(control)];
    await bed.proxy.cut();
    const watch = startWatch();
    expect((await release(control, released.lease)).status).toBe(204);
    expect((await released.client.closed).code).toBe(4410);
    const recoveryMs = watch.since();
    const network = { allowed_hosts: ["a.example"] };
    const patched = await answeredByNode(() =>
      control.call(`PATCH /browsers/${deleted.lease.session_id}`, { network }),
    );
    expect(patched).toMatchObject({ status: 200, body: { network: { allowed_hosts: ["a.example"] } } });
    expect((await control.call(`DELETE /browsers/${deleted.lease.session_id}`)).status).toBe(204);
    expect((await deleted.client.closed).code).toBe(4410);
    await bed.proxy.restore();
    await control.poolWhen("herd", (pool) => pool.available_count === 2 && pool.acquired_count === 0);
    await until("the network of the browser that stayed", async () =>
      (await control.browsersOf("herd")).every(({ state }) => state === "idle"),
    );
    expect(node.log).not.toContain("browsers ended");
    tell({ saw: "former sockets were cut; PATCH 200; DELETE 204", recoveryMs });
  },
);

/** Before a node; says when a message was posted to it. */
async function openFront() {
  let to = 0;
  let told = (): void => {};
  const posted = new Promise<void>((resolve) => (told = resolve));
  const front = createServer((socket) => {
    const onward = connect(to, "127.0.0.1");
    for (const end of [socket, onward])
      end.on("error", () => {}).once("close", () => (socket.destroy(), onward.destroy()));
    socket.on("data", (piece: Buffer) => void (piece.includes("POST /node/messages") && told()));
    socket.pipe(onward).pipe(socket);
  }).listen(0, "127.0.0.1");
  await once(front, "listening");
  onTestFinished(() => void front.close());
  return {
    url: `http://127.0.0.1:${(front.address() as AddressInfo).port}`,
    posted,
    leadTo: (url: string) => void (to = Number(new URL(url).port)),
  };
}

fault(
  "Redis goes away from a control between a PATCH's question and its answer: it says that the network is in force",
  async (tell) => {
    const control = await bed.start("control", patient);
    const front = await openFront();
    const node = await bed.start(
      "node",
      { node: { ...patient.node, address: front.url } },
      { redisUrl: bed.redis.url },
    );
    front.leadTo(node.url);
    await control.makePool({ name: "herd", size: 1 });
    const {
      lease: { session_id: id },
      client,
    } = await lease(control);
    const redis = bed.redis.client();
    onTestFinished(() => redis.disconnect());
    const patch = () => control.call(`PATCH /browsers/${id}`, { network: { allowed_hosts: ["a.example"] } });
    node.signal("SIGSTOP");
    const patching = patch();
    await front.posted;
    await bed.proxy.cut();
    node.signal("SIGCONT");
    expect(await patching).toMatchObject({
      status: 503,
      body: { code: "store_unavailable", details: [{ code: "network_in_force" }] },
    });
    const [key = ""] = await redis.keys("*:browsers");
    await until(
      "the node's own word in the record",
      async () => !((await redis.hget(key, id)) ?? "").includes("networkWanted"),
    );
    const watch = startWatch();
    await bed.proxy.restore();
    const again = await until("the repeat", async () => [await patch()].find(({ status }) => status === 200));
    expect(again.body).toMatchObject({ network: { allowed_hosts: ["a.example"] } });
    await client.close();
    tell({ saw: "503, in force; the repeat 200", recoveryMs: watch.since() });
  },
);
