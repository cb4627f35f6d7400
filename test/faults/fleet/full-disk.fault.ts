import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { describe, expect, onTestFinished } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import { zipBytes } from "../../support/archive/zip-bytes.js";
import type { DaemonProcess } from "../../support/daemon/daemon-process.js";
import type { Lease } from "../../support/daemon/daemon.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import { newDirectory } from "../../support/killed-runs.js";
import { fault, startWatch } from "../../support/faults/fault.js";
import { FaultFleet, size } from "./fault-fleet.js";
import { openFleetNetwork } from "./network.js";
import { diskOf, growProfile } from "../../support/faults/small-disk.js";

const mebibytes = 32;
/** More than anything else that comes and goes on the disk. */
const largeBytes = 2 ** 20;

/** A fleet whose node a has a small disk; archives are on another, as in a bucket. */
async function openFleet(): Promise<FaultFleet> {
  const directory = newDirectory("archives");
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const options = { file: { archives: { directory } }, disks: { a: mebibytes } };
  const fleet = await FaultFleet.open(openFleetNetwork, options);
  onTestFinished(() => fleet.close());
  await fleet.hold();
  return fleet;
}

/** A session on demand on node a, which saves a large profile when it ends. */
async function savingSession(fleet: FaultFleet, name: string): Promise<Lease> {
  const { control } = fleet;
  await control.call("POST /profiles", { name });
  const elsewhere: Lease[] = [];
  const lease = await until("a session on node a", async () => {
    const profile = { name, save_changes: true };
    const asked = { headless: true, engine: "chromium", profile };
    const { status, body } = await control.call("POST /browsers", asked);
    if (status !== 200) return undefined;
    if (fleet.node("a").daemon.log.includes((body as Lease).session_id)) return body as Lease;
    elsewhere.push(body as Lease);
    return undefined;
  });
  for (const { session_id: id } of elsewhere) await control.call(`DELETE /browsers/${id}`);
  growProfile(fleet.node("a").daemon, lease.session_id, largeBytes);
  return lease;
}

async function upload({ url, apiKey }: DaemonProcess, { session_id: id }: Lease): Promise<object> {
  const manifest = JSON.stringify({ manifest_version: 3, name: "large", version: "1" });
  const zip = zipBytes([
    { name: "manifest.json", content: manifest },
    { name: "large.bin", content: randomBytes(largeBytes) },
  ]);
  const form = new FormData();
  form.set("extensions[0][name]", "large");
  form.set("extensions[0][zip_file]", new Blob([zip]), "large.zip");
  const reply = await fetch(`${url}/browsers/${id}/extensions`, {
    method: "POST",
    headers: { authorization: `Bearer ${apiKey}` },
    body: form,
  });
  return { status: reply.status, ...(reply.status === 201 ? {} : ((await reply.json()) as object)) };
}

describe.runIf(process.getuid?.() === 0)("where a disk can be mounted", () => {
  fault(
    "the disk of a node is full amid a fleet that lends, and has room again",
    async (tell) => {
      const fleet = await openFleet();
      const { control } = fleet;
      const { daemon } = fleet.node("a");
      const disk = diskOf(daemon, daemon.place.dataDir);
      const saving = await savingSession(fleet, "kept");
      disk.fill();
      await expectLending(fleet);
      await until("an entry that the journal could not write", async () => {
        await visit(fleet);
        return daemon.log.includes("journal not written");
      });
      expect(await upload(control, saving)).toMatchObject({
        status: 503,
        code: "unavailable",
        message: expect.stringContaining("node has run out of disk space"),
      });
      expect((await control.call(`DELETE /browsers/${saving.session_id}`)).status).toBe(204);
      await until("a save that failed", () => daemon.log.includes("profile not saved; it is as it was"));
      expect((await control.call("GET /profiles/kept")).body).not.toHaveProperty("updated_at");
      // Launches need none of it.
      expect((await control.call("POST /browser_pools/herd/flush", {})).status).toBe(204);
      await fleet.expectSound();
      disk.empty();
      const watch = startWatch();
      await until("the journal", () => daemon.log.includes("journal written again"));
      const journalMs = watch.since();
      const again = await savingSession(fleet, "again");
      expect(await upload(control, again)).toEqual({ status: 201 });
      await control.call(`DELETE /browsers/${again.session_id}`);
      await until("a save", async () => (await control.call("GET /profiles/again")).body.updated_at);
      const recoveryMs = watch.since();
      await fleet.expectSound();
      expect(daemon.log).not.toContain("daemon failed");
      tell({
        saw: `leases went on; 503 unavailable for an upload, a profile not saved; journal written ${seconds(journalMs)} after there was room; ${fleet.network.kind}`,
        recoveryMs,
      });
    },
    240_000,
  );
});

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;

/** Each held lease answers its client, and others are lent and taken back. */
async function expectLending(fleet: FaultFleet): Promise<void> {
  for (let lent = 0; lent < 2 * size; lent += 1) expect(await fleet.isLending()).toBe(true);
  for (const { client } of fleet.held) expect((await client.send("Browser.getVersion")).result).toBeDefined();
}

/** A further client comes under each lease of node a, which its journal is to note. */
async function visit(fleet: FaultFleet): Promise<void> {
  for (const { node, cdp_ws_url: url } of fleet.held) if (node === "a") await (await connectRaw(url)).close();
}
