import { expect } from "vitest";
import { until } from "../support/browser/chromium-until.js";
import type { DaemonProcess } from "../support/daemon/daemon-process.js";
import type { Lease } from "../support/daemon/daemon.js";
import { connectRaw } from "../support/gateway/raw-cdp.js";
import { useFaultBed } from "../support/faults/bed.js";
import { fault, startWatch } from "../support/faults/fault.js";

const bed = useFaultBed();
/** Nobody takes the node for lost while it is tried, nor back a lease whose answer is in doubt. */
const patient = {
  node: { id: "far", lost_after_ms: 60_000, isolated_limit_seconds: 60 },
  acquire: { provisional_seconds: 60 },
};

/** A URL that leads to the node itself, with no control in between. */
const straight = (url: string, control: DaemonProcess, node: DaemonProcess): string =>
  url.replace(new URL(control.url).host, new URL(node.url).host);

async function acquire(control: DaemonProcess): Promise<Lease> {
  const got = await control.call("POST /browser_pools/herd/acquire", { acquire_timeout_seconds: 30 });
  expect(got.status).toBe(200);
  return got.body as Lease;
}

/** Connects and asks the browser something; `open`, or how that was refused. */
async function tryClient(url: string): Promise<string> {
  try {
    const client = await connectRaw(url);
    expect(await client.send("Browser.getVersion")).toHaveProperty("result");
    await client.close();
    return "open";
  } catch (error) {
    return String(/\b\d{3}$/.exec(error instanceof Error ? error.message : "")?.[0] ?? error);
  }
}

async function openedLease(control: DaemonProcess, url: (lease: Lease) => string): Promise<Lease> {
  const lease = await acquire(control);
  expect(await tryClient(url(lease))).toBe("open");
  return lease;
}

fault("a node is cut off from Redis: new clients of leases that it knows are let in", async (tell) => {
  const control = await bed.start("control", patient, { redisUrl: bed.redis.url });
  const node = await bed.start("node", patient);
  const urlOf = ({ cdp_ws_url }: Lease): string => straight(cdp_ws_url, control, node);
  await control.makePool({ name: "herd", size: 3 });
  const used = await openedLease(control, urlOf);
  const released = await openedLease(control, urlOf);
  const unopened = await acquire(control);
  await bed.proxy.cut();
  const watch = startWatch();
  const direct = await tryClient(urlOf(used));
  const letInMs = watch.since();
  expect(direct).toBe("open");
  // A control that has Redis sends them on, and asks for pages too.
  expect(await tryClient(used.cdp_ws_url)).toBe("open");
  const page = urlOf(used).replace(/^ws/, "http").replace("/cdp", "/cdp/json/version");
  expect((await fetch(page)).status).toBe(200);
  // Whether a lease that nobody has used is still good is known to Redis alone.
  expect(await tryClient(urlOf(unopened))).toBe("503");
  // Another lease's token is none of this browser's, and one that was made up is nobody's.
  const forged = urlOf(used).replace(/token=.*$/, urlOf(released).slice(urlOf(released).indexOf("token=")));
  expect(await tryClient(forged)).toBe("401");
  // The end of a lease is told to the node directly.
  const { session_id } = released;
  expect((await control.call("POST /browser_pools/herd/release", { session_id })).status).toBe(204);
  await until("its end heard", async () => (await tryClient(urlOf(released))) === "410");
  expect(await tryClient(urlOf(used))).toBe("open");
  await bed.proxy.restore();
  await control.poolWhen("herd", (pool) => pool.acquired_count === 2 && pool.available_count === 1);
  // Not all connections of the node are back at once.
  await until("the other's turn", async () => (await tryClient(urlOf(unopened))) === "open");
  expect(control.log + node.log).not.toContain("node lost");
  tell({ saw: `clients of a known lease let in after ${(letInMs / 1000).toFixed(1)} s, of others 503` });
});

fault(
  "a node's connections to Redis freeze: new clients of leases that it knows are let in",
  async (tell) => {
    const control = await bed.start("control", patient, { redisUrl: bed.redis.url });
    const node = await bed.start("node", patient);
    const urlOf = ({ cdp_ws_url }: Lease): string => straight(cdp_ws_url, control, node);
    await control.makePool({ name: "herd", size: 2 });
    const used = await openedLease(control, urlOf);
    const unopened = await acquire(control);
    bed.proxy.freeze();
    const watch = startWatch();
    expect(await tryClient(urlOf(used))).toBe("open");
    tell({ saw: `let in after ${(watch.since() / 1000).toFixed(1)} s` });
    // Only a node that has Redis again can give its name back when it stops.
    await until("the other's turn", async () => (await tryClient(urlOf(unopened))) === "open");
  },
);

fault("Redis stands still for everybody: a control sends clients of known leases on", async (tell) => {
  const control = await bed.start("control", patient);
  const node = await bed.start("node", patient);
  await control.makePool({ name: "herd", size: 2 });
  const used = await openedLease(control, ({ cdp_ws_url }) => cdp_ws_url);
  const unopened = await acquire(control);
  bed.redis.signal("SIGSTOP");
  const watch = startWatch();
  expect(await tryClient(used.cdp_ws_url)).toBe("open");
  const letInMs = watch.since();
  // What a process has written arrives here after what it has sent.
  await until("that is said", () => node.log.includes("client admitted without Redis"));
  expect(await tryClient(unopened.cdp_ws_url)).toBe("503");
  bed.redis.signal("SIGCONT");
  const back = startWatch();
  await until("the other's turn", async () => (await tryClient(unopened.cdp_ws_url)) === "open");
  tell({ saw: `let in after ${(letInMs / 1000).toFixed(1)} s, others 503`, recoveryMs: back.since() });
});

fault(
  "a node stood still, and cannot ask Redis whether it was taken for lost: it lets nobody in",
  async (tell) => {
    const beats = { lost_after_ms: 2000, beat_period_ms: 200 };
    const control = await bed.start("control", { node: beats }, { redisUrl: bed.redis.url });
    const node = await bed.start("node", { node: { ...patient.node, ...beats } });
    const urlOf = ({ cdp_ws_url }: Lease): string => straight(cdp_ws_url, control, node);
    await control.makePool({ name: "herd" });
    const used = await openedLease(control, urlOf);
    const from = control.log.length;
    node.signal("SIGSTOP");
    await bed.proxy.cut();
    await until("the node lost", () => control.log.slice(from).includes('"node lost"'));
    node.signal("SIGCONT");
    expect(await tryClient(urlOf(used))).toBe("503");
    await bed.proxy.restore();
    const watch = startWatch();
    await until("Redis asked", async () => (await tryClient(urlOf(used))) === "410");
    tell({ saw: "503, and then 410", recoveryMs: watch.since() });
  },
);

fault("a node is without Redis for node.isolated_limit_seconds: it lets nobody in any more", async (tell) => {
  const short = { node: { ...patient.node, isolated_limit_seconds: 20 } };
  const control = await bed.start("control", short, { redisUrl: bed.redis.url });
  const node = await bed.start("node", short);
  const urlOf = ({ cdp_ws_url }: Lease): string => straight(cdp_ws_url, control, node);
  await control.makePool({ name: "herd" });
  const used = await openedLease(control, urlOf);
  await bed.proxy.cut();
  const watch = startWatch();
  const statuses = new Set<string>();
  await until("its end", async () => {
    const status = await tryClient(urlOf(used));
    statuses.add(status);
    return status !== "open";
  });
  const aloneMs = watch.since();
  expect(statuses).toContain("open");
  await until("browsers ended", () => node.log.includes("contact lost: browsers ended"));
  expect(["410", "503"]).toContain(await tryClient(urlOf(used)));
  await bed.proxy.restore();
  const back = startWatch();
  await control.poolWhen("herd", (pool) => pool.available_count === 1);
  tell({ saw: `let in for ${(aloneMs / 1000).toFixed(1)} s`, recoveryMs: back.since() });
});
