import { randomBytes } from "node:crypto";
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createServer, type Server } from "node:http";
import type { Socket } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { workspaceOf } from "../../support/browser/browser-processes.js";
import { newDirectory } from "../../support/archive/archive-bed.js";
import { extensionZip } from "../../support/archive/zip-bytes.js";
import { DaemonClient, type Lease } from "../../support/daemon/daemon.js";
import type { DaemonProcess } from "../../support/daemon/daemon-process.js";
import { Fleet, type FleetNode } from "../../support/daemon/fleet.js";
import { closeServer, listenLocally } from "../../support/egress/local-server.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import { failed } from "../../support/http/http-server.js";
import { field, file, multipartBody, multipartType } from "../../support/http/multipart-body.js";
import { stallReader } from "../../support/http/stalled-reader.js";

const patient = {
  acquire: { control_lost_after_ms: 60_000, provisional_seconds: 60 },
  node: { lost_after_ms: 60_000 },
};
const patience = { timeout: 60_000 };
let fleet: Fleet;
let controls: readonly [DaemonProcess, DaemonProcess];
let node: FleetNode;
beforeEach(async () => {
  fleet = await Fleet.open();
  const settings = { ...patient, archives: { directory: await newDirectory() } };
  controls = [await fleet.control(settings), await fleet.control(settings)];
  node = await fleet.node("one", settings);
});
afterEach(() => fleet.close());

/** A key, and who shows it at the second control. */
async function makeKey() {
  const { body } = await controls[0].call("POST /org/api_keys", { name: "made" });
  return { id: String(body.id), client: new DaemonClient(controls[1].url, String(body.key)) };
}
const remove = async (id: string): Promise<void> => {
  expect((await controls[0].call(`DELETE /org/api_keys/${id}`)).status).toBe(204);
};
async function launch(more: object = {}): Promise<Lease> {
  const { status, body, text } = await controls[0].call("POST /browsers", { headless: true, ...more });
  if (status !== 200) throw new Error(`no browser: ${text}`);
  return body as Lease;
}
const partOf = ({ session_id }: Lease, part: string): string =>
  join(workspaceOf(node.daemon.place.scratchDirectory, session_id), part);

/** A profile that is longer than what Linux keeps of one connection for its two ends; gives its path. */
async function saveProfile(): Promise<string> {
  await controls[0].call("POST /profiles", { name: "fat" });
  const lease = await launch({ profile: { name: "fat", save_changes: true } });
  const profile = partOf(lease, "profile");
  const { uid, gid } = statSync(profile);
  const files = join(profile, "Default", "a site's files");
  mkdirSync(files, { recursive: true });
  writeFileSync(join(files, "0"), randomBytes(2 ** 24));
  for (const path of [join(profile, "Default"), files, join(files, "0")]) chownSync(path, uid, gid);
  await controls[0].call(`DELETE /browsers/${lease.session_id}`);
  const isSaved = async () => (await controls[0].call("GET /profiles/fat")).body.updated_at !== undefined;
  await expect.poll(isSaved, patience).toBe(true);
  return "/profiles/fat/download";
}

/** Entries of the log that make a chunk as long; gives its path. */
async function fillLog(): Promise<string> {
  const redis = fleet.redis.client();
  const path = `/${"x".repeat(1000)}`;
  const row = JSON.stringify(["api_key", "root", "", 200, "GET", path, path, "", 1, "", ""]);
  for (let batch = 0; batch < 50; batch += 1) {
    const adding = redis.pipeline();
    for (let at = 0; at < 200; at += 1)
      adding.xadd("remuda:{audit}:auditStream", "*", "at", Date.now(), "entry", row);
    await adding.exec();
  }
  redis.disconnect();
  const [start, end] = [-3_600_000, 60_000].map((ms) => new Date(Date.now() + ms).toISOString());
  return `/audit-logs/export/chunk?format=jsonl&start=${start}&end=${end}`;
}

test.each([
  ["the download of a profile", saveProfile],
  ["a chunk of the audit log", fillLog],
])("%s ends with its key where its control stood still at that moment", async (_, prepare) => {
  const path = await prepare();
  const { id, client } = await makeKey();
  const headers = [`Authorization: Bearer ${client.apiKey}`];
  const { socket, unsent } = await stallReader(client.url, `GET ${path}`, headers);
  await expect.poll(unsent, patience).toBeGreaterThan(0);
  controls[1].signal("SIGSTOP");
  await remove(id);
  controls[1].signal("SIGCONT");
  await expect.poll(unsent, patience).toBeUndefined();
  socket.destroy();
  expect((await client.call(`GET ${path}`)).status).toBe(401);
});

test("a browser's request ends with the key, also at its site, where its control stood still at that moment", async () => {
  const asked: Socket[] = [];
  const site: Server = createServer(({ socket }) => void asked.push(socket));
  const url = `http://${await listenLocally(site)}/`;
  const { session_id: session } = await launch();
  const { id, client } = await makeKey();
  const answer = failed(client.call(`POST /browsers/${session}/curl`, { url, timeout_ms: 60_000 }));
  await expect.poll(() => asked.length, patience).toBe(1);
  controls[1].signal("SIGSTOP");
  await remove(id);
  controls[1].signal("SIGCONT");
  expect(await answer).toBeInstanceOf(TypeError);
  await expect.poll(() => asked[0]?.destroyed, patience).toBe(true);
  expect((await client.call(`POST /browsers/${session}/curl`, { url })).status).toBe(401);
  expect(asked).toHaveLength(1);
  await closeServer(site);
});

/**
 * Whether something has come for the node on a connection that stands, and was not read (proc_net_tcp(5)).
 */
function isAwaited(): boolean {
  const port = node.daemon.port.toString(16).toUpperCase().padStart(4, "0");
  const rows = readFileSync("/proc/net/tcp", "latin1").matchAll(
    new RegExp(`[0-9A-F]{8}:${port} [0-9A-F]{8}:[0-9A-F]{4} 01 [0-9A-F]{8}:([0-9A-F]{8}) `, "g"),
  );
  return [...rows].some(([, unread = ""]) => parseInt(unread, 16) > 0);
}

test("a browser's request that its node has not taken yet is not made after the end of its key", async () => {
  const asked: string[] = [];
  const site = createServer(({ url = "" }, response) => {
    asked.push(url);
    response.end();
  });
  const origin = `http://${await listenLocally(site)}`;
  const { session_id: session } = await launch();
  const { id, client } = await makeKey();
  const curl = (by: DaemonClient, path: string) =>
    by.call(`POST /browsers/${session}/curl`, { url: origin + path, timeout_ms: 60_000 });
  node.daemon.signal("SIGSTOP");
  const answer = failed(curl(client, "/late"));
  await expect.poll(isAwaited, patience).toBe(true);
  await remove(id);
  expect(await answer).toBeInstanceOf(TypeError);
  // The control has hung up there, too.
  await expect.poll(isAwaited, patience).toBe(false);
  node.daemon.signal("SIGCONT");
  expect((await curl(controls[0], "/next")).status).toBe(200);
  expect(asked).toEqual(["/next"]);
  await closeServer(site);
});

test("an upload that its node has not taken yet ends with its key; the browser has all of it or nothing", async () => {
  const lease = await launch({ engine: "chromium" });
  const { id, client } = await makeKey();
  const upload = ({ url, apiKey }: DaemonClient, name: string): Promise<Response> =>
    fetch(`${url}/browsers/${lease.session_id}/extensions`, {
      method: "POST",
      headers: { authorization: `Bearer ${apiKey}`, "content-type": multipartType },
      body: multipartBody([
        field("extensions[0][name]", name),
        file("extensions[0][zip_file]", extensionZip([], { name })),
      ]),
    });
  node.daemon.signal("SIGSTOP");
  const answer = failed(upload(client, "first"));
  const staging = join(controls[1].place.dataDir, "staging");
  await expect.poll(() => readdirSync(staging).length, patience).toBe(1);
  await remove(id);
  expect(await answer).toBeInstanceOf(TypeError);
  node.daemon.signal("SIGCONT");
  // The node takes one after the other: what was asked before has been decided by then.
  expect((await upload(controls[0], "second")).status).toBe(201);
  const loaded = readdirSync(partOf(lease, "extensions"));
  expect([1, 2]).toContain(loaded.length);
  for (const name of loaded)
    expect(existsSync(join(partOf(lease, "extensions"), name, "manifest.json"))).toBe(true);
  const socket = await connectRaw(lease.cdp_ws_url);
  expect((await socket.send("Browser.getVersion")).result).toBeDefined();
  await socket.close();
  expect((await upload(client, "third")).status).toBe(401);
  expect(readdirSync(partOf(lease, "extensions"))).toEqual(loaded);
});
