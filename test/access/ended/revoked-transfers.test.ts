import { readdir } from "node:fs/promises";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { sharedAccessBed } from "../../support/access/access-bed.js";
import { multipartType } from "../../support/http/multipart-body.js";
import { stallReader } from "../../support/http/stalled-reader.js";

const bed = sharedAccessBed(2, { projects: { enabled: true } });
const patience = { timeout: 60_000 };
const sockets: Socket[] = [];
afterEach(() => sockets.splice(0).forEach((socket) => socket.destroy()));

/** A request at the second control that is written as it is. */
async function begin(line: string, key: string, more: readonly string[] = []): Promise<Socket> {
  const { hostname, port } = new URL(bed.controls[1]?.url ?? "");
  const socket = connect(Number(port), hostname);
  sockets.push(socket.on("error", () => {}).pause());
  await once(socket, "connect");
  const head = [`${line} HTTP/1.1`, `Host: ${hostname}:${port}`, `Authorization: Bearer ${key}`, ...more];
  socket.write(`${head.join("\r\n")}\r\n\r\n`);
  return socket;
}
const remove = async (id: string): Promise<void> => {
  expect((await bed.root.call(`DELETE /org/api_keys/${id}`)).status).toBe(204);
};

/** The first part of an extension, of which nothing more comes; gives its connection and where it is kept. */
async function beginUpload(key: string): Promise<{ socket: Socket; staging: string }> {
  const staging = join(bed.controls[1]?.place.dataDir ?? "", "staging");
  const socket = await begin("POST /extensions", key, [
    `Content-Type: ${multipartType}`,
    "Content-Length: 1000000",
    "Expect: 100-continue",
  ]);
  socket.resume();
  await once(socket, "data");
  const boundary = multipartType.split("boundary=")[1] ?? "";
  socket.write(
    `--${boundary}\r\nContent-Disposition: form-data; name="name"\r\n\r\nhalf\r\n--${boundary}\r\n` +
      'Content-Disposition: form-data; name="file"; filename="a.zip"\r\n' +
      `Content-Type: application/zip\r\n\r\n${"x".repeat(200_000)}`,
  );
  await expect.poll(async () => (await readdir(staging)).length, patience).toBe(1);
  return { socket, staging };
}

test("an upload ends with its key, deleted at another control, and leaves nothing behind", async () => {
  const { id, key } = await bed.make();
  const { socket, staging } = await beginUpload(key);
  const closed = once(socket, "close");
  await remove(id);
  await closed;
  await expect.poll(async () => await readdir(staging), patience).toEqual([]);
  expect((await bed.root.call("GET /extensions")).body).toEqual([]);
});

test("an upload ends with the project of its key, archived at another control; that is deleted then", async () => {
  const { body } = await bed.root.call("POST /org/projects", { name: "ending" });
  const { key } = await bed.make({ project_id: body.id });
  const { socket, staging } = await beginUpload(key);
  const closed = once(socket, "close");
  const archived = await bed.root.call(`PATCH /org/projects/${body.id}`, { status: "archived" });
  expect(archived).toMatchObject({ status: 200 });
  await closed;
  await expect.poll(async () => await readdir(staging), patience).toEqual([]);
  expect((await bed.root.call(`DELETE /org/projects/${body.id}`)).status).toBe(204);
});

/** Entries of the log that make a chunk longer than what Linux keeps of one connection for its two ends. */
async function fillLog(): Promise<void> {
  const path = `/${"x".repeat(1000)}`;
  const row = JSON.stringify(["api_key", "root", "", 200, "GET", path, path, "", 1, "", ""]);
  for (let batch = 0; batch < 50; batch += 1) {
    const adding = bed.redis.pipeline();
    for (let at = 0; at < 200; at += 1)
      adding.xadd("remuda:{audit}:auditStream", "*", "at", Date.now(), "entry", row);
    await adding.exec();
  }
}

test("an export ends with its key, deleted at another control, also where its reader has stopped", async () => {
  await fillLog();
  const { id, key } = await bed.make();
  const [start, end] = [-3_600_000, 60_000].map((ms) => new Date(Date.now() + ms).toISOString());
  const line = `GET /audit-logs/export/chunk?format=jsonl&start=${start}&end=${end}`;
  const headers = [`Authorization: Bearer ${key}`];
  const { socket, unsent } = await stallReader(bed.controls[1]?.url ?? "", line, headers);
  sockets.push(socket);
  await expect.poll(unsent, patience).toBeGreaterThan(0);
  await remove(id);
  await expect.poll(unsent, patience).toBeUndefined();
});
