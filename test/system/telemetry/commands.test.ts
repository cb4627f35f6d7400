import { once } from "node:events";
import { readdir, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocket } from "ws";
import type { TelemetryEvent } from "../../../src/telemetry/event.js";
import { until } from "../../support/browser/chromium-until.js";
import { type Daemon, type Lease, startDaemon } from "../../support/daemon/daemon.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import {
  drivePlaywright,
  drivePuppeteer,
  secret,
  secretPage,
  secretPath,
} from "../../support/telemetry/driven-clients.js";
import { findNewest, readStored } from "../../support/telemetry/stored-events.js";

let daemon: Daemon;
let lease: Lease;
/** It lies in the session's own directory, so that it can be uploaded. */
let file: string;
let site: Server;
let siteUrl: string;
beforeAll(async () => {
  site = createServer((_, response) => response.setHeader("content-type", "text/html").end(secretPage));
  await new Promise<void>((resolve) => void site.listen(0, "127.0.0.1", resolve));
  siteUrl = `http://127.0.0.1:${(site.address() as AddressInfo).port}${secretPath}`;
  daemon = await startDaemon();
  const telemetry = { enabled: true };
  // As long as the tests may take, since no client is connected between them.
  const asked = { headless: true, timeout_seconds: 600, telemetry };
  const { status, body, text } = await daemon.call("POST /browsers", asked);
  if (status !== 200) throw new Error(`no session: ${text}`);
  lease = body as Lease;
  const { scratchDirectory } = daemon.place;
  const workspace = (await readdir(scratchDirectory)).find((name) => /^b-[0-9a-f]+$/.test(name)) ?? "";
  file = join(scratchDirectory, workspace, "uploads", `${secret}.txt`);
  await writeFile(file, secret, { mode: 0o644 });
});
afterAll(async () => {
  await daemon.stop();
  site.closeAllConnections();
  await new Promise((resolve) => void site.close(resolve));
});

const told = new Set<unknown>();
interface Told {
  readonly commands: readonly TelemetryEvent[];
  readonly disconnect: TelemetryEvent;
  /** The numbers of all that is stored; the last is the disconnect's. */
  readonly seqs: readonly number[];
  /** All that is stored. */
  readonly text: string;
}

/** What was told of the client that has just gone, once that is told: nothing is told after it. */
async function toldUntilGone(): Promise<Told> {
  const { dataDir } = daemon.place;
  const disconnect = await until("the client is told to be gone", async () => {
    const newest = await findNewest(dataDir, lease.lease_id);
    return newest?.type === "cdp_disconnect" && !told.has(newest.data["connection_id"]) ? newest : undefined;
  });
  const id = disconnect.data["connection_id"];
  told.add(id);
  const { events, seqs, text } = await readStored(dataDir, lease.lease_id);
  const isTheirs = ({ type, data }: TelemetryEvent): boolean =>
    type === "cdp_command" && data["connection_id"] === id;
  return { commands: events.filter(isTheirs), disconnect, seqs, text };
}

/** A word for what it is, a few for how. */
function lineOf({ data }: TelemetryEvent): string {
  const names = ["event_type", "button", "click_count", "named_key", "text_length", "file_count"];
  const more = ["accept", "prompt_text_length", "format", "url_scheme"];
  const words = [...names, ...more].map((name) => data[name]).filter((value) => value !== undefined);
  return [data["method"], ...words].join(" ");
}

const click = (count: number): string[] => [
  `Input.dispatchMouseEvent mousePressed left ${count}`,
  `Input.dispatchMouseEvent mouseReleased left ${count}`,
];

const pointed = ["DOM.scrollIntoViewIfNeeded", "Input.dispatchMouseEvent mouseMoved none"];

test("what Playwright does is told as commands in their order, and nothing secret of it", async () => {
  await drivePlaywright(lease, { url: siteUrl, file });
  const { commands, disconnect, text } = await toldUntilGone();
  expect(commands.map(lineOf)).toEqual([
    "Target.createBrowserContext",
    "Target.createTarget about",
    "Browser.setWindowBounds",
    "Page.navigate http",
    ...pointed,
    ...click(1),
    `Page.handleJavaScriptDialog true ${secret.length}`,
    ...pointed,
    ...click(1),
    ...click(2),
    `Input.insertText ${secret.length}`,
    ...[1, 2].flatMap(() => ["Input.dispatchKeyEvent keyDown 1", "Input.dispatchKeyEvent keyUp"]),
    "Input.dispatchKeyEvent keyDown Enter 1",
    "Input.dispatchKeyEvent keyUp Enter",
    // What is uploaded goes into the page by a script.
    "Page.captureScreenshot jpeg",
    "Target.closeTarget",
  ]);
  expect(disconnect.data).toMatchObject({
    reason: "client_close",
    telemetry_dropped: 0,
    telemetry_excluded: 0,
  });
  expect(text).not.toContain(secret);
});

test("what Puppeteer does is told so, too", async () => {
  await drivePuppeteer(lease, { url: siteUrl, file });
  const { commands, disconnect, text } = await toldUntilGone();
  expect(commands.map(lineOf)).toEqual([
    "Target.createBrowserContext",
    "Target.createTarget about",
    "Page.navigate http",
    "Input.dispatchMouseEvent mouseMoved none",
    ...click(1),
    `Page.handleJavaScriptDialog true ${secret.length}`,
    ...[1, 2].flatMap(() => ["Input.dispatchKeyEvent keyDown 1", "Input.dispatchKeyEvent keyUp"]),
    "Input.dispatchKeyEvent keyDown Enter 1",
    "Input.dispatchKeyEvent keyUp Enter",
    "DOM.setFileInputFiles 1",
    "Page.captureScreenshot png",
    "Target.disposeBrowserContext",
  ]);
  expect(disconnect.data).toMatchObject({
    reason: "client_close",
    telemetry_dropped: 0,
    telemetry_excluded: 0,
  });
  expect(text).not.toContain(secret);
});

const many = 50_000;
/** The gateway refuses more than twice as many. */
const outstanding = 5000;

/** Sends so many commands that Chromium answers at once; resolves when it has answered all. */
function sendMany(socket: WebSocket): Promise<void> {
  // As long as an identifier may be: so a session keeps fewer than are sent, by its default bound.
  const params = { targetId: "x".repeat(128) };
  let [sent, answered] = [0, 0];
  const send = (): void => {
    sent += 1;
    socket.send(JSON.stringify({ id: sent, method: "Target.activateTarget", params }));
  };
  return new Promise((resolve) => {
    socket.on("message", () => {
      answered += 1;
      if (sent < many) send();
      if (answered === many) resolve();
    });
    for (let place = 0; place < outstanding; place += 1) send();
  });
}

test("50,000 commands at full speed: each is told in its place, or is counted as lost", async () => {
  const before = (await readStored(daemon.place.dataDir, lease.lease_id)).seqs.at(-1) ?? 0;
  const socket = new WebSocket(lease.cdp_ws_url, { perMessageDeflate: false });
  await once(socket, "open");
  await sendMany(socket);
  socket.close();
  const { commands, disconnect, seqs } = await toldUntilGone();
  const { telemetry_dropped: dropped, message_count: messages } = disconnect.data;
  const [first = 0, last = 0] = [seqs[0], seqs.at(-1)];
  // Between the two events of the connection there is a number for each command that was not lost.
  const numbered = last - before - 2;
  expect([numbered + Number(dropped), messages]).toEqual([many, 2 * many]);
  // The oldest have gone, as the session keeps no more: the first number that is left tells how many.
  const gone = first - before - 2;
  expect(gone).toBeGreaterThan(0);
  expect(seqs).toEqual(Array.from({ length: last - first + 1 }, (_, at) => first + at));
  const ids = commands.map(({ data }) => Number(data["command_id"]));
  expect(ids.length).toBe(numbered - gone);
  expect(ids.every((id, place) => place === 0 || id > Number(ids[place - 1]))).toBe(true);
  if (dropped === 0) expect(ids[0]).toBe(gone + 1);
  const { body } = await daemon.call(`GET /browsers/${lease.session_id}/telemetry/events?limit=1&since=1h`);
  expect(body).toMatchObject([{ seq: first, event: { data: { command_id: ids[0] } } }]);
});

test("a method that is excluded while its client is connected is counted from then on", async () => {
  const client = await connectRaw(lease.cdp_ws_url);
  await client.send("Target.activateTarget", { targetId: "x" });
  const control = { enabled: true, cdp: { excluded_methods: ["Target.activateTarget"] } };
  const changed = await daemon.call(`PATCH /browsers/${lease.session_id}`, {
    telemetry: { browser: { control } },
  });
  expect(changed.status).toBe(200);
  await client.send("Target.activateTarget", { targetId: "x" });
  await client.send("Target.closeTarget", { targetId: "x" });
  await client.close();
  const { commands, disconnect } = await toldUntilGone();
  expect(commands.map(lineOf)).toEqual(["Target.activateTarget", "Target.closeTarget"]);
  expect(disconnect.data).toMatchObject({ telemetry_dropped: 0, telemetry_excluded: 1, message_count: 6 });
});

test("a client that is there when its session ends is told to be gone, as the last of it", async () => {
  const client = await connectRaw(lease.cdp_ws_url);
  expect((await daemon.call(`DELETE /browsers/${lease.session_id}`)).status).toBe(204);
  const { disconnect } = await toldUntilGone();
  expect(disconnect.data).toMatchObject({ reason: "context_cancelled" });
  await client.closed;
});
