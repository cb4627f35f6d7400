import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { redisPidIn } from "../../support/daemon/said.js";
import { type DaemonProcess, spawnDaemon } from "../../support/daemon/daemon-process.js";
import { DaemonPlace } from "../../support/daemon/daemon-settings.js";
import { signalLiving } from "../../support/living.js";

const path = "/vaults/logins/items/shop";
const secretOf = (version: number): string => `secret-of-version-${version}-x7c1`;
const patchOf = (version: number) => ({
  type: "credential",
  version,
  spec: { fields: { user: { value: `v${version + 1}` }, password: { value: secretOf(version + 1) } } },
});

async function start(place: DaemonPlace): Promise<DaemonProcess> {
  const daemon = await spawnDaemon(place);
  await daemon.call("POST /vaults", { name: "logins" });
  const fields = [
    { name: "user", type: "text", sensitive: false, value: "v1" },
    { name: "password", type: "password", value: secretOf(1) },
  ];
  const made = await daemon.call(`PUT ${path}`, { type: "credential", spec: { provider: "native", fields } });
  expect(made, made.text).toMatchObject({ status: 200 });
  return daemon;
}

/** Changes the item until its daemon and its Redis are killed; the last version that was acknowledged. */
async function changeUntilKilled(daemon: DaemonProcess, version: number, changes: number): Promise<number> {
  let acknowledged = version;
  for (let count = 0; ; count += 1) {
    // The one that is cut is under way as they die.
    const sent = daemon.call(`PATCH ${path}`, patchOf(acknowledged)).catch(() => undefined);
    if (count === changes) {
      await new Promise((resolve) => setImmediate(resolve));
      daemon.signal("SIGKILL");
      signalLiving(redisPidIn(daemon.log), "SIGKILL");
    }
    const got = await sent;
    if (count < changes) expect(got, got?.text).toMatchObject({ status: 200 });
    if (got?.status === 200) acknowledged = Number(got.body.version);
    if (count === changes) return acknowledged;
  }
}

const filesIn = (directory: string): readonly string[] =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

test("daemon and Redis killed amid changes: each that was acknowledged is there, the last is whole or not at all, and no file has a secret", async () => {
  // A busy disk is no fault.
  const place = new DaemonPlace({ file: { redis: { command_timeout_ms: 20_000 } } });
  let daemon = await start(place);
  let version = 1;
  let said = "";
  for (const changes of [3, 0, 7]) {
    const acknowledged = await changeUntilKilled(daemon, version, changes);
    await daemon.ended();
    said += daemon.log;
    daemon = await spawnDaemon(place);
    const { body } = await daemon.call(`GET ${path}`);
    expect([acknowledged, acknowledged + 1]).toContain(body.version);
    expect(body).toMatchObject({
      state: {
        status: "ready",
        fields: { user: { value: `v${body.version}` }, password: { has_value: true } },
      },
    });
    version = Number(body.version);
  }
  expect(version).toBeGreaterThanOrEqual(11);
  const next = await daemon.call(`PATCH ${path}`, patchOf(version));
  expect(next).toMatchObject({ status: 200, body: { version: version + 1 } });
  const kept = filesIn(place.dataDir).map((file) => readFileSync(file, "latin1"));
  expect(kept.some((text) => text.includes("vaultValues"))).toBe(true);
  for (const text of [said, daemon.log, ...kept]) expect(text).not.toContain("secret-of-version");
  await daemon.stop(said);
});
