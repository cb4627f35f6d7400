import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import { type FakeChromium, makeFakeChromium, standIn } from "../../support/browser/chromium-fake.js";
import { spawnDaemon } from "../../support/daemon/daemon-process.js";
import { DaemonPlace } from "../../support/daemon/daemon-settings.js";

const path = "/vaults/logins/items/shop";
const fields = [{ name: "user", type: "text", value: "v1" }];
const changing = (version: number) => ({
  type: "credential",
  version,
  spec: { fields: { user: { value: `v${version + 1}` } } },
});

const run = (...command: readonly [string, ...string[]]): number | null =>
  spawnSync(command[0], command.slice(1)).status;

test.runIf(process.getuid?.() === 0)(
  "a disk that is full refuses changes of vaults with 503, ends nobody, and takes them when there is room",
  async () => {
    const fake: FakeChromium = await makeFakeChromium();
    const place = new DaemonPlace({ file: standIn(fake) });
    mkdirSync(place.dataDir, { mode: 0o700 });
    expect(run("mount", "-t", "tmpfs", "-o", "size=200m,mode=700", "remuda", place.dataDir)).toBe(0);
    onTestFinished(() => void run("umount", "-lq", place.dataDir));
    const daemon = await spawnDaemon(place);
    await daemon.call("POST /vaults", { name: "logins" });
    await daemon.call(`PUT ${path}`, { type: "credential", spec: { provider: "native", fields } });
    const filler = join(place.dataDir, "filler");
    // Until nothing more goes in.
    run("dd", "if=/dev/zero", `of=${filler}`, "bs=64k");
    const change = async (): Promise<number> => {
      // What was answered 503 may have been done.
      const { version } = (await daemon.call(`GET ${path}`)).body;
      return (await daemon.call(`PATCH ${path}`, changing(Number(version)))).status;
    };
    const statuses = new Set<number>();
    await until("there is no room for a change", async () => statuses.add(await change()).has(503));
    for (let tries = 0; tries < 3; tries += 1) statuses.add(await change());
    expect([...statuses].filter((status) => status !== 200)).toEqual([503]);
    expect(await daemon.call("GET /vaults")).toMatchObject({ status: 200, body: [{ name: "logins" }] });
    rmSync(filler);
    await until("it is written", async () => (await change()) === 200);
    expect((await daemon.end("SIGTERM")).code).toBe(0);
    expect(run("umount", place.dataDir)).toBe(0);
    place.remove();
    await fake.remove();
  },
);
