import { writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { workspaceOf } from "../../support/browser/browser-processes.js";
import { until } from "../../support/browser/chromium-until.js";
import { type Daemon, type Lease, startDaemon } from "../../support/daemon/daemon.js";
import { connectBidi } from "../../support/gateway/raw-bidi.js";
import {
  drivePlaywright,
  drivePuppeteer,
  secret,
  secretPage,
  secretPath,
} from "../../support/telemetry/driven-clients.js";
import { OtlpReceiver } from "../../support/telemetry/otlp-receiver.js";
import { readStored } from "../../support/telemetry/stored-events.js";

let daemon: Daemon;
let receiver: OtlpReceiver;
let site: Server;
let url: string;
beforeAll(async () => {
  receiver = await new OtlpReceiver().start();
  site = createServer((_, response) => response.setHeader("content-type", "text/html").end(secretPage));
  await new Promise<void>((resolve) => void site.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(site.address() as AddressInfo).port}${secretPath}`;
  daemon = await startDaemon({
    file: { telemetry: { export: { private_hosts: ["127.0.0.1"], delay_ms: 20 } } },
  });
  await daemon.call("POST /telemetry/destinations", { name: "collector", endpoint: receiver.url });
});
afterAll(async () => {
  await daemon.stop();
  site.closeAllConnections();
  await new Promise((resolve) => void site.close(resolve));
  await receiver.close();
});

const exported = { otlp: { destination: { name: "collector" } } };
const created = async (telemetry: object): Promise<Lease> =>
  (await daemon.call("POST /browsers", { headless: true, timeout_seconds: 600, telemetry })).body as Lease;

/** All that a stream sends, until its session ends. */
async function followed({ session_id }: Lease): Promise<{ readonly whole: Promise<string> }> {
  const reply = await fetch(`${daemon.url}/browsers/${session_id}/telemetry/stream?replay=all`, {
    headers: { authorization: `Bearer ${daemon.apiKey}` },
  });
  expect(reply.status).toBe(200);
  return { whole: reply.text() };
}

async function uploadable({ session_id }: Lease): Promise<string> {
  const workspace = workspaceOf(daemon.place.scratchDirectory, session_id);
  const file = join(workspace, "uploads", `${secret}.txt`);
  await writeFile(file, secret, { mode: 0o644 });
  return file;
}

/** Drives by WebDriver BiDi: an address, typed text, a click and a script, all with the secret. */
async function driveBidi({ webdriver_ws_url }: Lease): Promise<void> {
  const client = await connectBidi(webdriver_ws_url);
  const context = await client.begin();
  await client.open(context, url);
  const typed = [...secret].flatMap((value) => [
    { type: "keyDown", value },
    { type: "keyUp", value },
  ]);
  const pointed = [
    { type: "pointerMove", x: 10, y: 10 },
    { type: "pointerDown", button: 0 },
    { type: "pointerUp", button: 0 },
  ];
  await client.send("input.performActions", {
    context,
    actions: [
      { type: "key", id: "keys", actions: typed },
      { type: "pointer", id: "mouse", actions: pointed },
    ],
  });
  await client.evaluate(context, `"${secret}"`);
  await client.send("session.end");
  await client.closed;
}

const methodsIn = (records: readonly { type: string; body: unknown }[]): unknown[] =>
  records
    .filter(({ type }) => type === "cdp_command")
    .map(({ body }) => (body as Record<string, unknown>)["method"]);

test("of what Playwright, Puppeteer and BiDi clients type, open, run and upload nothing is stored, streamed or exported", async () => {
  const lease = await created({ enabled: true, export: exported });
  const stream = await followed(lease);
  const file = await uploadable(lease);
  await drivePlaywright(lease, { url, file });
  await drivePuppeteer(lease, { url, file });
  await driveBidi(lease);
  const disconnects = (text: string): number => text.split('"type":"cdp_disconnect"').length - 1;
  const { text, events } = await until("all clients are told to be gone", async () => {
    const stored = await readStored(daemon.place.dataDir, lease.lease_id);
    return disconnects(stored.text) === 3 ? stored : undefined;
  });
  const records = await receiver.has(events.length);
  await daemon.call(`DELETE /browsers/${lease.session_id}`);
  const streamed = await stream.whole;
  // The bytes are those of the whole run, wherever they went.
  expect(disconnects(streamed)).toBe(3);
  expect(records.map(({ type }) => type).toSorted()).toEqual(events.map(({ type }) => type).toSorted());
  const methods = methodsIn(records);
  for (const method of [
    "Input.insertText",
    "Page.navigate",
    "DOM.setFileInputFiles",
    "Page.captureScreenshot",
  ])
    expect(methods).toContain(method);
  const ofBidi = events.filter(({ source }) => source.metadata?.["protocol"] === "webdriver_bidi");
  const told = new Set(ofBidi.map(({ type, data }) => data["method"] ?? type));
  for (const word of ["cdp_connect", "Page.navigate", "Input.dispatchKeyEvent", "Input.dispatchMouseEvent"])
    expect([...told]).toContain(word);
  // The secret was typed key by key: not one of them is told by what it types.
  const keys = events.filter(({ data }) => data["method"] === "Input.dispatchKeyEvent");
  expect(keys.length).toBeGreaterThanOrEqual(2 * secret.length);
  expect(JSON.stringify(keys)).not.toMatch(/:"(?:.|Key.|Digit.)"/u);
  const bytes = Buffer.concat(receiver.requests.map((request) => request.bytes)).toString("latin1");
  const forms = [secret, encodeURIComponent(file), file, Buffer.from(secret).toString("base64")];
  for (const form of forms) for (const where of [text, streamed, bytes]) expect(where).not.toContain(form);
});

test("what pages do is exported as it is stored, but for pictures", async () => {
  const on = { enabled: true };
  const before = receiver.records.length;
  const browser = { console: on, network: on, page: on, interaction: on, screenshot: on };
  const lease = await created({ browser, export: exported });
  await driveBidi(lease);
  const wanted = ["network_request", "network_response", "page_navigation", "page_load", "cdp_disconnect"];
  const typesOf = (): string[] => receiver.records.slice(before).map(({ type }) => type);
  await until("what its pages did", () => wanted.every((type) => typesOf().includes(type)));
  expect(typesOf()).not.toContain("monitor_screenshot");
  const request = receiver.records.find(({ type }) => type === "network_request");
  expect(request).toMatchObject({
    attributes: { "url.full": expect.stringContaining("http://127.0.0.1"), "http.request.method": "GET" },
    resource: { "session.id": lease.session_id, "remuda.lease.id": lease.lease_id },
  });
  await daemon.call(`DELETE /browsers/${lease.session_id}`);
});
