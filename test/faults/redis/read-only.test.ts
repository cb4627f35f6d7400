import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished } from "vitest";
import { spawnDaemon } from "../../support/daemon/daemon-process.js";
import { DaemonPlace } from "../../support/daemon/daemon-settings.js";
import { makeFakeChromium, standIn } from "../../support/browser/chromium-fake.js";
import type { Lease } from "../../support/daemon/daemon.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import { startRedis, type TestRedis } from "../../support/store/redis.js";
import { fault, startWatch } from "../../support/faults/fault.js";
import { uploadExtension } from "../../support/faults/upload-extension.js";

const isRoot = process.getuid?.() === 0;

let redis: TestRedis;
beforeEach(async () => {
  redis = await startRedis();
});
afterEach(() => redis.stop());

/** Turns a directory read-only, as the kernel does after an error of its disk; the result undoes it. */
function turnReadOnly(directory: string): () => void {
  let isThere = true;
  const undo = (): void => {
    // A daemon that looks into it just now would keep it from going at once.
    if (isThere) execFileSync("umount", ["--lazy", directory]);
    isThere = false;
  };
  execFileSync("mount", ["--bind", directory, directory]);
  onTestFinished(undo);
  execFileSync("mount", ["-o", "remount,bind,ro", directory]);
  return undo;
}

describe.runIf(isRoot)("where directories can be turned read-only", () => {
  fault("where a daemon keeps archives turns read-only: only what needs it is refused", async (tell) => {
    const fake = await makeFakeChromium();
    onTestFinished(() => fake.remove());
    const place = new DaemonPlace({
      role: "all",
      redisUrl: redis.url,
      file: { drain: { limit_seconds: 0 }, ...standIn(fake) },
    });
    const daemon = await spawnDaemon(place);
    await daemon.makePool({ name: "herd", size: 2, headless: true });
    expect(await uploadExtension(daemon)).toMatchObject({ status: 201 });
    const undo = ["staging", "archives"].map((name) => turnReadOnly(join(place.dataDir, name)));
    expect(await uploadExtension(daemon)).toMatchObject({ status: 503, code: "unavailable" });
    const { body } = await daemon.call("POST /browser_pools/herd/acquire", {});
    const { session_id, cdp_ws_url } = body as Lease;
    const client = await connectRaw(cdp_ws_url);
    expect(await client.send("Browser.getVersion")).toHaveProperty("result");
    await daemon.call("POST /browser_pools/herd/release", { session_id, reuse: false });
    await daemon.poolWhen("herd", (pool) => pool.available_count === 2);
    for (const each of undo) each();
    const watch = startWatch();
    expect(await uploadExtension(daemon)).toMatchObject({ status: 201 });
    tell({ saw: "503 unavailable for uploads; launches and leases went on", recoveryMs: watch.since() });
    await daemon.stop();
  });

  fault("a daemon is started in a data directory that is read-only", async (tell) => {
    const place = new DaemonPlace({ role: "all", redisUrl: redis.url });
    onTestFinished(() => place.remove());
    mkdirSync(place.dataDir);
    turnReadOnly(place.dataDir);
    await expect(spawnDaemon(place)).rejects.toThrow(
      /cannot be the data directory \(EROFS: read-only file system.*name another one in REMUDA_DATA_DIR/,
    );
    tell({ saw: "nothing: it does not start, and says why" });
  });
});
