import { createHash } from "node:crypto";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { connect } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { newDirectory } from "../../support/archive/archive-bed.js";
import { extensionZip } from "../../support/archive/zip-bytes.js";
import { DaemonClient, type Lease } from "../../support/daemon/daemon.js";
import type { DaemonProcess } from "../../support/daemon/daemon-process.js";
import { Fleet } from "../../support/daemon/fleet.js";
import { field, file, multipartBody, multipartType } from "../../support/http/multipart-body.js";

const patient = {
  acquire: { control_lost_after_ms: 60_000, provisional_seconds: 60 },
  node: { lost_after_ms: 60_000 },
};
let fleet: Fleet;
let controls: readonly [DaemonProcess, DaemonProcess];
/** All daemons have the same. */
let archives: string;
beforeEach(async () => {
  fleet = await Fleet.open();
  archives = await newDirectory();
  const settings = { ...patient, archives: { directory: archives } };
  controls = [await fleet.control(settings), await fleet.control(settings)];
  await fleet.node("one", settings);
});
afterEach(() => fleet.close());

async function makeKey() {
  const { body } = await controls[0].call("POST /org/api_keys", { name: "made" });
  return { id: String(body.id), client: new DaemonClient(controls[1].url, String(body.key)) };
}

/** An upload at the second control of which the last byte is still to come. */
async function begin({ url, apiKey }: DaemonClient, path: string, body: Buffer) {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname).on("error", () => {});
  const head = [
    `POST ${path} HTTP/1.1`,
    `Host: ${hostname}:${port}`,
    `Authorization: Bearer ${apiKey}`,
    `Content-Type: ${multipartType}`,
    `Content-Length: ${body.length}`,
    // Its answer tells that the request is let in.
    "Expect: 100-continue",
  ];
  socket.write(`${head.join("\r\n")}\r\n\r\n`);
  await once(socket, "data");
  socket.write(body.subarray(0, -1));
  /** Gives the status, none where the connection is closed. */
  return async (): Promise<string> => {
    const closed = once(socket, "close").then(() => "");
    socket.write(body.subarray(-1));
    const text = await Promise.race([closed, once(socket, "data").then(String, () => "")]);
    socket.destroy();
    return text.slice("HTTP/1.1 ".length, "HTTP/1.1 ".length + 3);
  };
}

const isKept = (zip: Buffer): boolean => {
  const digest = createHash("sha256").update(zip).digest("hex");
  return readdirSync(archives, { recursive: true, encoding: "utf8" }).some((path) => path.includes(digest));
};

const sorts: readonly (readonly [string, (session: string) => string, (zip: Buffer) => Buffer])[] = [
  ["the store", () => "/extensions", (zip) => multipartBody([file("file", zip)])],
  [
    "a running browser",
    (session) => `/browsers/${session}/extensions`,
    (zip) => multipartBody([field("extensions[0][name]", "one"), file("extensions[0][zip_file]", zip)]),
  ],
];

test.each(sorts)("%s takes no extension whose last byte comes after the end of its key", async (...sort) => {
  const [, pathIn, bodyOf] = sort;
  const { id, client } = await makeKey();
  const lease = (await client.call("POST /browsers", { headless: true, engine: "chromium" })).body as Lease;
  const path = pathIn(lease.session_id);
  const [before, after] = ["before", "after"].map((name) => extensionZip([], { name })) as [Buffer, Buffer];
  expect(await (await begin(client, path, bodyOf(before)))()).toBe("201");
  expect([before, after].map(isKept)).toEqual([true, false]);
  const finish = await begin(client, path, bodyOf(after));
  expect((await controls[0].call(`DELETE /org/api_keys/${id}`)).status).toBe(204);
  // Where the control has looked at its open requests meanwhile, there is no connection any more.
  expect(["401", ""]).toContain(await finish());
  await expect.poll(async () => (await client.call("GET /auth/context")).status).toBe(401);
  expect(isKept(after)).toBe(false);
});
