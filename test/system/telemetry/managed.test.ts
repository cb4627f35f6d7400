import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { toFile } from "@onkernel/sdk";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findExecutable } from "../../../src/browser/executable.js";
import type { TelemetryEvent } from "../../../src/telemetry/event.js";
import { packExtension } from "../../support/archive/packed-extension.js";
import { extensionZip, zipBytes } from "../../support/archive/zip-bytes.js";
import { processesOf } from "../../support/browser/browser-processes.js";
import { until } from "../../support/browser/chromium-until.js";
import { type Daemon, type Lease, startDaemon } from "../../support/daemon/daemon.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import { signal } from "../../support/living.js";

let daemon: Daemon;
beforeAll(async () => {
  // Packed extensions need Chromium itself.
  daemon = await startDaemon({ file: { browser: { engine: "chromium" } } });
});
afterAll(() => daemon.stop());

const on = { enabled: true };
const off = { enabled: false };
const withPlatform = { telemetry: { browser: { platform: on } } };
const created = async (body: object = {}): Promise<Lease> =>
  (await daemon.call("POST /browsers", { headless: true, timeout_seconds: 600, ...body })).body as Lease;
const acquired = async (pool: string): Promise<Lease> =>
  (await daemon.call(`POST /browser_pools/${pool}/acquire`, { acquire_timeout_seconds: 60 })).body as Lease;
const end = ({ session_id }: Lease) => daemon.call(`DELETE /browsers/${session_id}`);
const patch = ({ session_id }: Lease, telemetry: object) =>
  daemon.call(`PATCH /browsers/${session_id}`, { telemetry });
const storedOf = async ({ session_id }: Lease, headers = {}): Promise<readonly TelemetryEvent[]> => {
  const path = `/browsers/${session_id}/telemetry/events?limit=100&since=1h`;
  const { body } = await daemon.call(`GET ${path}`, undefined, headers);
  return Array.isArray(body) ? (body as { event: TelemetryEvent }[]).map(({ event }) => event) : [];
};
const toldWhen = (lease: Lease, type: string, headers = {}): Promise<TelemetryEvent> =>
  until(`${type} is told`, async () => (await storedOf(lease, headers)).find((event) => event.type === type));
const upload = async ({ session_id }: Lease, name: string, zip: Buffer): Promise<void> =>
  void (await daemon
    .kernel({ maxRetries: 0 })
    .browsers.loadExtensions(session_id, {
      extensions: [{ name, zip_file: await toFile(zip, `${name}.zip`) }],
    }));

const solved = {
  captcha_type: "hcaptcha",
  status: "success",
  duration_ms: 8250.5,
  website_host: "shop.example",
};
const report = ({ session_id }: Lease, body: object, headers = {}) =>
  daemon.call(`POST /browsers/${session_id}/telemetry/captcha_solve_results`, body, headers);

test("what a solver reports is told to the holder whose lease it names, by our clock, and to no other", async () => {
  await daemon.makePool({ name: "solved", telemetry: { browser: { platform: on } } });
  const first = await acquired("solved");
  const before = Date.now() * 1000;
  expect(await report(first, solved, { "x-remuda-lease-id": first.lease_id })).toMatchObject({ status: 204 });
  const told = await toldWhen(first, "captcha_solve_result");
  expect(told).toEqual({
    ts: expect.any(Number),
    type: "captcha_solve_result",
    category: "captcha",
    source: { kind: "kernel_api" },
    data: solved,
    truncated: false,
  });
  expect(told.ts - before).toBeGreaterThanOrEqual(0);
  // What holds a solution is refused whole.
  const token = "03AGdBq26-solution-of-this-suite";
  expect((await report(first, { ...solved, token })).status).toBe(400);

  await daemon.call("POST /browser_pools/solved/release", { session_id: first.session_id });
  const second = await acquired("solved");
  expect(second.session_id).toBe(first.session_id);
  expect(await report(first, solved, { "x-remuda-lease-id": first.lease_id })).toMatchObject({
    status: 409,
    body: { code: "lease_superseded" },
  });
  await patch(second, { browser: { captcha: off } });
  expect((await report(second, solved)).status).toBe(204);
  // Whatever the report had told would stand before it.
  await patch(second, { browser: { page: on } });
  await until("the calls", async () => (await storedOf(second)).length >= 2);
  expect((await storedOf(second)).map(({ type }) => type)).not.toContain("captcha_solve_result");
  await end(second);
  expect((await report(second, solved)).status).toBe(404);
  const former = JSON.stringify(await storedOf(first, { "x-remuda-lease-id": first.lease_id }));
  expect(former.match(/captcha_solve_result/g)).toHaveLength(1);
  expect(former + daemon.log).not.toContain(token);
});

test("an upload of extensions is told to its holder; one that restarts Chromium ends the clients as upstream_changed", async () => {
  const lease = await created(withPlatform);
  await upload(lease, "plain", extensionZip());
  expect((await toldWhen(lease, "platform_api_call")).data).toMatchObject({
    operation_id: "addBrowserExtensions",
    status: 201,
    duration_ms: expect.any(Number),
  });
  const client = await connectRaw(lease.cdp_ws_url);
  await toldWhen(lease, "cdp_connect");
  const packed = await packExtension({ chromium: (await findExecutable("chromium")) ?? "" });
  const names = await readdir(packed.path);
  const files = await Promise.all(
    names.map(async (name) => ({ name, content: await readFile(join(packed.path, name)) })),
  );
  await upload(lease, "packed", zipBytes(files));
  await packed.remove();
  await client.closed;
  expect((await toldWhen(lease, "cdp_disconnect")).data).toMatchObject({ reason: "upstream_changed" });
  const uploads = await until("both are told", async () => {
    const calls = (await storedOf(lease)).filter(({ type }) => type === "platform_api_call");
    return calls.length >= 2 ? calls : undefined;
  });
  expect(new Set(uploads.map(({ data }) => data.request_id)).size).toBe(2);
  expect(uploads).toHaveLength(2);
  await end(lease);
});

test("a Chromium that crashes ends its clients as upstream_error, and the events stay readable", async () => {
  const lease = await created({ telemetry: { enabled: true } });
  const client = await connectRaw(lease.cdp_ws_url);
  await toldWhen(lease, "cdp_connect");
  signal((await processesOf(daemon.place.scratchDirectory, lease.session_id)).main, "SIGKILL");
  await client.closed;
  expect((await toldWhen(lease, "cdp_disconnect")).data).toMatchObject({ reason: "upstream_error" });
  expect((await toldWhen(lease, "service_crashed")).data).toMatchObject({
    service_name: "chromium",
    phase: "running",
  });
});

test("of changes that race each takes what the others have left, and what was answered last holds", async () => {
  const lease = await created({ telemetry: { enabled: true } });
  for (let round = 0; round < 5; round += 1) {
    const categories = ["page", "console", "network"] as const;
    const wanted = round % 2 === 0 ? on : off;
    const answers = await Promise.all(
      categories.map((category) => patch(lease, { browser: { [category]: wanted } })),
    );
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    // None has undone another: each is a merge onto what was there.
    const { telemetry } = (await daemon.call(`GET /browsers/${lease.session_id}`)).body;
    for (const category of categories) expect(telemetry.browser[category]).toEqual(wanted);
    expect(telemetry.browser.control).toEqual(on);
  }
  // One of two that contradict each other holds whole, for the record and for the browser's node.
  await Promise.all([
    patch(lease, { enabled: true, browser: { platform: on, connection: off } }),
    patch(lease, { enabled: true, browser: { platform: on, control: off } }),
  ]);
  const { browser } = (await daemon.call(`GET /browsers/${lease.session_id}`)).body.telemetry;
  expect([browser.connection.enabled, browser.control.enabled].toSorted()).toEqual([false, true]);
  const client = await connectRaw(lease.cdp_ws_url);
  await client.send("Page.close", {}, await client.attach());
  await client.close();
  const expected = browser.connection.enabled ? "cdp_disconnect" : "cdp_command";
  // What the first client had told would stand before what this one does.
  const later = await connectRaw(lease.cdp_ws_url);
  await later.send("Target.createTarget", { url: "about:blank" });
  await later.close();
  const types = await until("both are told", async () => {
    const all = (await storedOf(lease)).map(({ type }) => type);
    return all.filter((type) => type === expected).length >= 2 ? all : undefined;
  });
  expect(types).not.toContain(browser.connection.enabled ? "cdp_command" : "cdp_disconnect");
  await end(lease);
});
