import { BadRequestError, ConflictError, NotFoundError, PermissionDeniedError } from "@onkernel/sdk";
import { expect, test } from "vitest";
import { extensionZip } from "../../support/archive/zip-bytes.js";
import { sha256, sharedExtensionBed, storeId, zip } from "../../support/http/extension-bed.js";
import { failed } from "../../support/http/http-server.js";

const bed = sharedExtensionBed();
const { archives, upload } = bed;

test("the official client uploads, lists, reads, downloads and deletes", async () => {
  const made = await upload("ads");
  expect(made).toEqual({
    id: expect.stringMatching(/^[0-9a-z]{24}$/),
    name: "ads",
    created_at: expect.any(String),
    size_bytes: zip.length,
    checksum: sha256(zip),
  });
  expect(await bed.kernel.extensions.get("ads")).toEqual(made);
  expect(await bed.kernel.extensions.get(made.id)).toEqual(made);
  const nameless = await upload();
  expect(nameless).not.toHaveProperty("name");
  const listed: unknown[] = [];
  for await (const one of bed.kernel.extensions.list({ limit: 1 })) listed.push(one);
  expect(listed).toEqual([nameless, made]);
  const reply = await bed.kernel.extensions.download("ads");
  expect([reply.headers.get("content-type"), reply.headers.get("content-length")]).toEqual([
    "application/octet-stream",
    String(zip.length),
  ]);
  expect(Buffer.from(await reply.arrayBuffer())).toEqual(zip);
  await bed.kernel.extensions.delete("ads");
  const { extensions } = bed.kernel;
  for (const refused of await Promise.all(
    [extensions.get(made.id), extensions.delete(made.id), extensions.download("ads")].map(failed),
  )) {
    expect(refused).toMatchObject({ error: { code: "extension_not_found" } });
  }
  expect(await failed(bed.kernel.extensions.delete("ads"))).toBeInstanceOf(NotFoundError);
});

test("a list is of those whose name it asks for, without regard to case and accents, or of part of it, or of the id", async () => {
  const [one, other] = [await upload("Ads.Block"), await upload("dark-mode")];
  const names = async (query: string) =>
    (await bed.daemon.call(`GET /extensions?${query}`)).body.map(({ name }: { name: string }) => name);
  expect(await names("")).toEqual(["dark-mode", "Ads.Block"]);
  expect(await names("name=ads.block")).toEqual(["Ads.Block"]);
  expect(await names("name=ads")).toEqual([]);
  expect(await names("query=MODE")).toEqual(["dark-mode"]);
  expect(await names(`query=${one.id}`)).toEqual(["Ads.Block"]);
  expect(await names("offset=1&limit=1")).toEqual(["Ads.Block"]);
  const page = await fetch(`${bed.daemon.url}/extensions?limit=1`, {
    headers: { authorization: `Bearer ${bed.daemon.place.apiKey}` },
  });
  expect([page.headers.get("x-has-more"), page.headers.get("x-next-offset")]).toEqual(["true", "1"]);
  expect(other.name).toBe("dark-mode");
});

test("a name belongs to one, and is free again when that is deleted; a refused upload keeps nothing", async () => {
  await upload("ads");
  const other = extensionZip([{ name: "b.js", content: "2" }]);
  const error = await failed(upload("ads", other));
  expect(error).toBeInstanceOf(ConflictError);
  expect(error).toMatchObject({ error: { code: "name_taken" } });
  expect(archives().some((name) => name.includes(sha256(other)))).toBe(false);
  await bed.kernel.extensions.delete("ads");
  expect((await upload("ads", other)).checksum).toBe(sha256(other));
});

test("there are no more than there may be", async () => {
  for (let count = 0; count < 12; count += 1) await upload();
  const error = await failed(upload());
  expect(error).toBeInstanceOf(PermissionDeniedError);
  expect(error).toMatchObject({ error: { code: "limit_exceeded" } });
});

test("one that a pool uses is not deleted, and the pools are told", async () => {
  const { id } = await upload("ads");
  const pool = await bed.kernel.browserPools.create({
    size: 1,
    name: "herd",
    fill_rate_per_minute: 0,
    extensions: [{ name: "ads" }],
  });
  const error = await failed(bed.kernel.extensions.delete("ads"));
  expect(error).toBeInstanceOf(BadRequestError);
  expect(error).toMatchObject({
    error: {
      code: "resource_in_use",
      details: [{ code: "resource_in_use", message: `pool herd (${pool.id})` }],
    },
  });
  expect(await bed.kernel.extensions.get("ads")).toMatchObject({ id });
  await bed.kernel.browserPools.delete("herd");
  await bed.kernel.extensions.delete("ads");
});

test("an archive that two extensions share is there once, and stays for the other", async () => {
  const [one, other] = [await upload("one"), await upload("other")];
  expect(archives().filter((name) => name.includes(sha256(zip)))).toHaveLength(1);
  await bed.kernel.extensions.delete(one.id);
  expect((await (await bed.kernel.extensions.download(other.id)).arrayBuffer()).byteLength).toBe(zip.length);
});

test("the official client downloads an extension of the web store, and nothing is registered by that", async () => {
  const url = `https://chromewebstore.google.com/detail/some-name/${storeId}`;
  const reply = await bed.kernel.extensions.downloadFromChromeStore({ url, os: "linux" });
  expect([reply.headers.get("content-type"), reply.headers.get("content-length")]).toEqual([
    "application/octet-stream",
    String(zip.length),
  ]);
  expect(Buffer.from(await reply.arrayBuffer())).toEqual(zip);
  expect((await bed.daemon.call("GET /extensions")).body).toEqual([]);
  expect(
    await failed(bed.kernel.extensions.downloadFromChromeStore({ url: "https://example.com/" })),
  ).toBeInstanceOf(BadRequestError);
  expect(await failed(bed.kernel.extensions.downloadFromChromeStore({ url: "a".repeat(32) }))).toMatchObject({
    status: 400,
    error: { message: expect.stringContaining("no such extension") },
  });
});
