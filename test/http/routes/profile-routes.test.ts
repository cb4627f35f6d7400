import Kernel, { ConflictError, NotFoundError } from "@onkernel/sdk";
import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { refusal } from "../../../src/base/errors.js";
import { key, send, type Sent, sharedServer } from "../../support/http/http-server.js";
import { profile } from "../../support/http/recorded-operations.js";

const server = sharedServer();
const ask = (path: string, sent: Sent = {}) => send(`${server().url}${path}`, sent);
const called = () => server().operations.calls.map(({ operation, args }) => [operation, ...args]);
const kernel = () => new Kernel({ apiKey: key, baseURL: server().url, maxRetries: 0 });
const shown = {
  id: profile.id,
  name: "me",
  created_at: "2023-11-14T22:13:20.000Z",
  updated_at: "2023-11-14T22:13:21.000Z",
  last_used_at: "2023-11-14T22:13:22.000Z",
};
const downloads = (bytes: Readable | undefined): void =>
  server().operations.answer("profiles.download", { kind: "done", value: bytes && { bytes } });

test("a profile shows exactly its fields; what it has not is left out", async () => {
  expect((await ask("/profiles/me")).body).toEqual(shown);
  server().operations.answer("profiles.get", {
    kind: "done",
    value: { id: profile.id, createdAt: profile.createdAt },
  });
  expect((await ask(`/profiles/${profile.id}`)).body).toEqual({
    id: profile.id,
    created_at: shown.created_at,
  });
  expect(called()).toEqual([
    ["profiles.get", "me"],
    ["profiles.get", profile.id],
  ]);
});

test.each([
  ["no body", {}],
  ["an empty one", { text: "", headers: { "content-type": "application/json" } }],
  ["an empty object", { body: {} }],
] as const)("one is created with %s", async (_what, sent) => {
  expect(await ask("/profiles", { method: "POST", ...sent })).toMatchObject({ status: 201, body: shown });
  expect(called()).toEqual([["profiles.create", {}]]);
});

test("a name is as a pool's, wherever it is given", async () => {
  const message = "name: must be 1 to 255 letters, digits, dots, underscores or hyphens";
  for (const name of ["", "a b", "é", "x".repeat(256), "a/b"]) {
    for (const [method, path] of [
      ["POST", "/profiles"],
      ["PATCH", "/profiles/me"],
    ]) {
      expect(await ask(path ?? "", { method: method ?? "", body: { name } })).toMatchObject({
        status: 400,
        body: { code: "bad_request", details: [{ code: "invalid_input", message }] },
      });
    }
  }
  expect((await ask("/profiles/me", { method: "PATCH" })).body.details).toEqual([
    { code: "invalid_input", message: "name: is required" },
  ]);
  expect(called()).toEqual([]);
  await ask("/profiles", { method: "POST", body: { name: "x".repeat(255) } });
  await ask("/profiles/me", { method: "PATCH", body: { name: "A.b_c-9" } });
  expect(called()).toEqual([
    ["profiles.create", { name: "x".repeat(255) }],
    ["profiles.rename", "me", "A.b_c-9"],
  ]);
});

test("lists are pages with the four headers, and pass on what is searched for", async () => {
  server().operations.answer("profiles.list", { items: [profile], hasMore: true, nextOffset: 6 });
  const got = await ask("/profiles?limit=1&offset=5&name=M%C3%A9&query=m");
  expect(got.body).toEqual([shown]);
  expect(["x-has-more", "x-next-offset", "x-limit", "x-offset"].map((name) => got.headers.get(name))).toEqual(
    ["true", "6", "1", "5"],
  );
  await ask("/profiles");
  expect(called()).toEqual([
    ["profiles.list", { limit: 1, offset: 5, name: "Mé", query: "m" }],
    ["profiles.list", { limit: 20, offset: 0 }],
  ]);
});

test("what can be neither an id nor a name names nothing and reaches no operation", async () => {
  for (const ref of ["%00", "a%2Fb", "%7Bx%7D", "a%20b", "x".repeat(256)]) {
    for (const [method, path] of [
      ["GET", ""],
      ["PATCH", ""],
      ["DELETE", ""],
      ["GET", "/download"],
    ]) {
      const got = await ask(`/profiles/${ref}${path}`, {
        method: method ?? "",
        ...(method === "PATCH" && { body: { name: "x" } }),
      });
      expect(got, `${method} ${ref}${path}`).toMatchObject({
        status: 404,
        body: { code: "profile_not_found" },
      });
    }
  }
  expect(called()).toEqual([]);
});

test("one is deleted with 204, or why not is told", async () => {
  const got = await ask("/profiles/me", { method: "DELETE" });
  expect([got.status, got.text, got.headers.get("content-type")]).toEqual([204, "", null]);
  const details = [{ code: "resource_in_use", message: "pool herd (p)" }];
  server().operations.answer(
    "profiles.remove",
    refusal("resource_in_use", { message: "Pools use this profile", details }),
  );
  expect(await ask("/profiles/me", { method: "DELETE" })).toMatchObject({
    status: 400,
    body: { code: "resource_in_use", message: "Pools use this profile", details },
  });
});

test("the unmodified official client reaches every operation", async () => {
  const client = kernel();
  expect(await client.profiles.create({})).toEqual(shown);
  expect(await client.profiles.create({ name: "me" })).toEqual(shown);
  expect(await client.profiles.retrieve("me")).toEqual(shown);
  expect(await client.profiles.update("me", { name: "you" })).toEqual(shown);
  expect((await client.profiles.list({ name: "me", query: "m" })).getPaginatedItems()).toEqual([shown]);
  const whole = await client.profiles.download("me");
  expect([whole.status, await whole.text()]).toEqual([200, "archive"]);
  downloads(undefined);
  const empty = await client.profiles.download("me", { format: "tar" });
  expect([empty.status, await empty.text()]).toEqual([202, ""]);
  expect(await client.profiles.delete("me")).toBeNull();
  expect(called()).toEqual([
    ["profiles.create", {}],
    ["profiles.create", { name: "me" }],
    ["profiles.get", "me"],
    ["profiles.rename", "me", "you"],
    ["profiles.list", { limit: 20, offset: 0, name: "me", query: "m" }],
    ["profiles.download", "me", "zstd"],
    ["profiles.download", "me", "tar"],
    ["profiles.remove", "me"],
  ]);
  server().operations.answer("profiles.create", refusal("name_taken"));
  expect(await client.profiles.create({ name: "me" }).catch((error: unknown) => error)).toBeInstanceOf(
    ConflictError,
  );
  server().operations.answer("profiles.get", refusal("profile_not_found"));
  expect(await client.profiles.retrieve("none").catch((error: unknown) => error)).toBeInstanceOf(
    NotFoundError,
  );
});
