import { spawn } from "node:child_process";
import { once } from "node:events";
import { dirname } from "node:path";
import { Redis } from "ioredis";
import { expect, onTestFinished } from "vitest";
import { bound } from "../../support/bound.js";
import { until } from "../../support/browser/chromium-until.js";
import type { Lease } from "../../support/daemon/daemon.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import { useFaultBed } from "../../support/faults/bed.js";
import { fault, startWatch } from "../../support/faults/fault.js";

const bed = useFaultBed();

const fillers = 2000;
const loadUs = 10_000;

/** A Redis on the same file, which it takes some 20 s to load; it answers meanwhile that it loads. */
async function startLoading(path: string): Promise<void> {
  const settings = {
    port: "0",
    unixsocket: path,
    dir: dirname(path),
    save: "",
    "key-load-delay": `${loadUs}`,
    "loading-process-events-interval-bytes": "1024",
  };
  const words = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
  const [program = "", ...args] = bound("redis-server", ...words);
  const child = spawn(program, args, { stdio: "ignore" });
  onTestFinished(async () => {
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  });
  const client = new Redis(path, {
    enableReadyCheck: false,
    retryStrategy: () => 20,
    maxRetriesPerRequest: null,
  });
  client.on("error", () => {});
  onTestFinished(() => client.disconnect());
  await until("a Redis that loads", () =>
    client.get("any").then(
      () => false,
      (error: Error) => error.message.startsWith("LOADING"),
    ),
  );
}

fault(
  "Redis is started again and loads its file for a long time (LOADING)",
  async (tell) => {
    const daemon = await bed.start("all", { node: { lost_after_ms: 60_000 } });
    await daemon.makePool({ name: "herd", size: 2 });
    const acquire = () => daemon.call("POST /browser_pools/herd/acquire", { acquire_timeout_seconds: 5 });
    const held = (await acquire()).body as Lease;
    const client = await connectRaw(held.cdp_ws_url);
    const page = await client.attach();
    const redis = bed.redis.client();
    const filling = redis.pipeline();
    for (let at = 0; at < fillers; at += 1) filling.set(`filler:${at}`, "x".repeat(100));
    await filling.exec();
    await bed.proxy.cut();
    await redis.save();
    redis.disconnect();
    const path = `${bed.redis.url}.loading`;
    await startLoading(path);
    bed.proxy.move(path);
    await bed.proxy.restore();
    const watch = startWatch();
    const refused = { status: 503, body: { code: "store_unavailable" } };
    for (const [operation, body] of [
      ["POST /browser_pools/herd/acquire", {}],
      ["POST /browsers", { headless: true }],
      ["POST /browser_pools/herd/release", { session_id: held.session_id }],
    ] as const)
      expect([operation, await daemon.call(operation, body)]).toMatchObject([operation, refused]);
    expect(await client.evaluate("6 * 7", page)).toBe(42);
    const lease = await until("a lease", async () => {
      const { status, body } = await acquire();
      expect([200, 204, 503]).toContain(status);
      return status === 200 ? (body as Lease) : undefined;
    });
    const recoveryMs = watch.since();
    expect(lease.session_id).not.toBe(held.session_id);
    expect((await daemon.call(`GET /browsers/${held.session_id}`)).body).toMatchObject({
      lease_id: held.lease_id,
    });
    expect(await client.evaluate("6 * 7", page)).toBe(42);
    tell({ saw: "503 store_unavailable; sockets went on", recoveryMs });
    await daemon.stop();
    bed.gone(daemon);
  },
  180_000,
);
