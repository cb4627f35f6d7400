import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { startS3Server } from "../archive/s3-server.js";
import { until } from "../browser/chromium-until.js";
import type { Lease } from "../daemon/daemon.js";
import type { DaemonProcess } from "../daemon/daemon-process.js";
import type { Fleet } from "../daemon/fleet.js";
import { destinationBody } from "../http/recorded-audit.js";
import { failed, type Got } from "../http/http-server.js";
import { OtlpReceiver } from "../telemetry/otlp-receiver.js";

/** What a daemon loads a package for when it is asked for it first. */
interface FirstUse {
  /** Resolves when it was tried, whatever came of it. */
  attempt(): Promise<unknown>;
  /** Resolves when it has done what it is for. */
  works(): Promise<void>;
}

/** A control that has done none of them yet. */
export async function openFirstUses(
  fleet: Fleet,
): Promise<{ readonly control: DaemonProcess; readonly uses: readonly FirstUse[] }> {
  const directory = await mkdtemp(join(tmpdir(), "remuda-test-archives-"));
  const [s3, receiver] = await Promise.all([startS3Server(), new OtlpReceiver().start()]);
  onTestFinished(async () => {
    await Promise.all([s3.close(), receiver.close(), rm(directory, { recursive: true })]);
  });
  const control = await fleet.control({
    archives: { directory, s3_access_key_id: "S3RVER", s3_secret_access_key: "S3RVER" },
    audit: { export: { assume_role: false, s3_endpoint: s3.settings.endpoint } },
    telemetry: { export: { private_hosts: ["127.0.0.1"], delay_ms: 10 } },
  });
  await fleet.node("a", { archives: { directory } });
  const uses = [
    documentation(control),
    await savedProfile(control),
    await auditExport(control),
    await telemetryExport(control, receiver),
  ];
  return { control, uses };
}

/** A use that one request is; its answer is the proof of it. */
const requestOf = (ask: () => Promise<Got>, proof: Partial<Got>): FirstUse => ({
  // Where the connection could not be taken either, there is no answer.
  attempt: () => failed(ask()),
  works: async () => expect(await ask()).toMatchObject({ status: 200, ...proof }),
});

const documentation = (control: DaemonProcess): FirstUse =>
  requestOf(() => control.call("GET /openapi.json"), { body: { openapi: expect.any(String) } });

/** Its node has saved it; that it is unpacked is the control's to do. */
async function savedProfile(control: DaemonProcess): Promise<FirstUse> {
  await control.call("POST /profiles", { name: "me" });
  const made = await control.call("POST /browsers", {
    headless: true,
    profile: { name: "me", save_changes: true },
  });
  await control.call(`DELETE /browsers/${(made.body as Lease).session_id}`);
  await until("its save", async () => (await control.call("GET /profiles/me")).body.updated_at);
  return requestOf(() => control.call("GET /profiles/me/download?format=tar"), {});
}

async function auditExport(control: DaemonProcess): Promise<FirstUse> {
  const path = "/audit-logs/export/destinations";
  const { id } = (await control.call(`POST ${path}`, destinationBody())).body;
  return requestOf(() => control.call(`POST ${path}/${id}/test`), { body: { success: true } });
}

/** Calls that manage a browser are exported by the control that has answered them. */
async function telemetryExport(control: DaemonProcess, receiver: OtlpReceiver): Promise<FirstUse> {
  await control.call("POST /telemetry/destinations", { name: "collector", endpoint: receiver.url });
  const { session_id: session } = (
    await control.call("POST /browsers", {
      headless: true,
      telemetry: {
        browser: { platform: { enabled: true } },
        export: { otlp: { destination: { name: "collector" } } },
      },
    })
  ).body as Lease;
  return {
    async attempt() {
      const [from, had] = [control.log.length, receiver.requests.length];
      const answer = await control.call(`PATCH /browsers/${session}`, { name: "renamed" }).catch(() => {});
      if (answer?.status !== 200) return;
      // On a slow machine the descriptors may be back before it is tried: then it arrives.
      await until(
        "a delivery tried",
        () =>
          receiver.requests.length > had ||
          control.log.slice(from).includes("a destination could not be read"),
      );
    },
    async works() {
      const had = receiver.requests.length;
      const { status } = await control.call(`PATCH /browsers/${session}`, { name: "at-last" });
      expect(status).toBe(200);
      await until("a delivery", () => receiver.requests.length > had);
    },
  };
}
