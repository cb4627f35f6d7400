import { expect } from "vitest";
import { until } from "../support/browser/chromium-until.js";
import type { DaemonProcess } from "../support/daemon/daemon-process.js";
import type { Lease } from "../support/daemon/daemon.js";
import { connectRaw, type RawCdp, type RawReply } from "../support/gateway/raw-cdp.js";
import { useFaultBed } from "../support/faults/bed.js";
import { fault, startWatch } from "../support/faults/fault.js";

const bed = useFaultBed();
const beats = { lost_after_ms: 2000, beat_period_ms: 200 };

/** A client of a lease, without the control in between. */
async function lend(control: DaemonProcess, node: DaemonProcess): Promise<RawCdp> {
  await control.makePool({ name: "herd" });
  const got = await control.call("POST /browser_pools/herd/acquire", { acquire_timeout_seconds: 30 });
  expect(got.status).toBe(200);
  const { cdp_ws_url } = got.body as Lease;
  const client = await connectRaw(cdp_ws_url.replace(new URL(control.url).host, new URL(node.url).host));
  expect(await client.send("Browser.getVersion")).toHaveProperty("result");
  return client;
}

/** Counts aloud on its console from now on; gives what the client has heard of it so far. */
async function countAloud(client: RawCdp): Promise<() => readonly number[]> {
  const session = await client.attach();
  await client.send("Runtime.enable", {}, session);
  const heard: number[] = [];
  client.socket.on("message", (data: Buffer) => {
    const { method, params } = JSON.parse(data.toString()) as RawReply;
    const [first] = (params?.["args"] ?? []) as readonly { readonly value?: number }[];
    if (method === "Runtime.consoleAPICalled") heard.push(first?.value ?? Number.NaN);
  });
  await client.evaluate(
    "let count = 0; setInterval(() => console.log((count += 1)), 20); undefined",
    session,
  );
  await until("the first of them", () => heard.length > 5);
  return () => heard;
}

fault(
  "a node stands still until it is taken for lost (SIGSTOP): nothing passes between its clients and its browsers",
  async (tell) => {
    // Only the node's way to Redis is cut: nothing but its own clock tells it how long it stood still.
    const control = await bed.start("control", { node: beats }, { redisUrl: bed.redis.url });
    const a = await bed.start("node", { node: { id: "a", ...beats } });
    const client = await lend(control, a);
    const heard = await countAloud(client);
    const from = control.log.length;
    a.signal("SIGSTOP");
    await bed.proxy.cut();
    let answered = 0;
    for (let i = 0; i < 5; i += 1) void client.send("Browser.getVersion").then(() => (answered += 1));
    await until("the node lost", () => control.log.slice(from).includes('"node lost"'));
    const before = heard().length;
    a.signal("SIGCONT");
    const watch = startWatch();
    await until("the node knows that Redis is away", () => a.log.includes("redis connection failed"));
    await bed.proxy.restore();
    await client.closed;
    const recoveryMs = watch.since();
    expect(answered).toBe(0);
    expect(heard().length - before).toBe(0);
    tell({ saw: "the former holder's socket was closed, nothing said either way", recoveryMs });
  },
);

fault(
  "a node stands still for as long and nobody has taken it for lost: what was said meanwhile arrives, in order",
  async (tell) => {
    const control = await bed.start("control", { node: beats });
    const a = await bed.start("node", { node: { id: "a", ...beats } });
    const client = await lend(control, a);
    const heard = await countAloud(client);
    control.signal("SIGSTOP");
    a.signal("SIGSTOP");
    const answer = client.send("Browser.getVersion");
    const still = startWatch();
    await until("longer than it may be silent", () => still.since() > 3000);
    a.signal("SIGCONT");
    const watch = startWatch();
    expect(await answer).toHaveProperty("result");
    const recoveryMs = watch.since();
    const late = heard().length + 5;
    await until("the page is heard again", () => heard().length > late);
    expect(heard()).toEqual(heard().map((_, place) => place + 1));
    tell({ saw: "the holder's command was answered late, its page heard without a gap", recoveryMs });
    control.signal("SIGCONT");
  },
);
