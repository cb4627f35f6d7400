import Kernel from "@onkernel/sdk";
import { expect, test } from "vitest";
import type { ProjectId } from "../../../src/base/ids.js";
import { done, refusal } from "../../../src/base/errors.js";
import { authenticator, knownKey } from "../../support/access/principals.js";
import { destination, destinationBody } from "../../support/http/recorded-audit.js";
import { key, send, sharedServer } from "../../support/http/http-server.js";

const recorded: string[] = [];
const audit = {
  record() {},
  recordNow: async ({ method }: { method: string }) => void recorded.push(method),
  async begin() {},
};
const server = sharedServer({}, { authenticator, audit });
const path = "/audit-logs/export/destinations";
const one = `${path}/${destination.id}`;
const operations = () => server().operations.calls.map(({ operation }) => operation);

const view = {
  id: destination.id,
  type: "s3",
  region: "us-east-1",
  bucket: "logs",
  prefix: "remuda",
  role_arn: "arn:aws:iam::123456789012:role/logs",
  external_id: "x".repeat(32),
  service_role_arn: "arn:aws:iam::210987654321:role/remuda",
  format: "jsonl.gz",
  status: "paused",
  consecutive_failures: 0,
  created_at: "2023-11-14T22:13:20.000Z",
  updated_at: "2023-11-14T22:13:21.000Z",
};

test("the unmodified official client manages destinations as its newer versions name them", async () => {
  const kernel = new Kernel({ apiKey: key, baseURL: server().url });
  expect(await kernel.post(path, { body: destinationBody() })).toEqual(view);
  expect(await kernel.get(one)).toEqual(view);
  expect(await kernel.patch(one, { body: { status: "active" } })).toEqual(view);
  expect(await kernel.post(`${one}/test`)).toEqual({ success: true, stage: "complete" });
  await kernel.delete(one);
  expect(operations()).toEqual([
    "destinations.create",
    "destinations.get",
    "destinations.update",
    "destinations.test",
    "destinations.remove",
  ]);
  // A trial changes nothing.
  expect(recorded).toEqual(["POST", "PATCH", "DELETE"]);
});

test("what is known of the delivery is shown, and the cursor opaquely", async () => {
  server().operations.answer(
    "destinations.get",
    done({
      ...destination,
      status: "active",
      kmsKeyId: "alias/logs",
      cursor: "1700000000000-000001",
      failures: 2,
      lastError: "There is no such bucket",
      lastErrorAt: 1_700_000_002_000,
      lastSuccessAt: 1_700_000_001_000,
      nextAttemptAt: 1_700_000_003_000,
    }),
  );
  const { body } = await send(server().url + one);
  expect(body).toEqual({
    ...view,
    status: "active",
    kms_key_id: "alias/logs",
    consecutive_failures: 2,
    last_error: "There is no such bucket",
    last_error_at: "2023-11-14T22:13:22.000Z",
    last_success_at: "2023-11-14T22:13:21.000Z",
    next_attempt_at: "2023-11-14T22:13:23.000Z",
    last_exported_cursor: expect.stringMatching(/^[\w-]+$/),
  });
  expect(body.last_exported_cursor).not.toContain("1700000000000");
});

test("a trial that has failed is an answer: its stage, and the code of that", async () => {
  server().operations.answer("destinations.test", done({ stage: "put_object", why: "It is away" }));
  expect(await send(`${server().url}${one}/test`, { method: "POST" })).toMatchObject({
    status: 200,
    body: {
      success: false,
      stage: "put_object",
      error: { code: "put_object_failed", message: "It is away" },
    },
  });
});

test("a list has pages of at most 100", async () => {
  const many = Array.from({ length: 3 }, (_, index) => ({ ...destination, bucket: `logs${index}` }));
  server().operations.answer("destinations.all", many);
  const page = await send(`${server().url}${path}?limit=2&offset=1`);
  expect(page.body.map(({ bucket }: { bucket: string }) => bucket)).toEqual(["logs1", "logs2"]);
  expect(page.headers.get("x-has-more")).toBe("false");
  expect((await send(`${server().url}${path}?limit=101`)).status).toBe(400);
});

test.each([
  ["a type that is none", { type: "gcs" }],
  ["no prefix", { prefix: undefined }],
  ["an external id of the caller's own choice", { external_id: "mine" }],
  ["a role of the service of the caller's own choice", { service_role_arn: destinationBody().role_arn }],
  ["a status at the creation", { status: "active" }],
  ["a region that is too long", { region: "a".repeat(129) }],
  ["a bucket that is too short", { bucket: "ab" }],
  ["a bucket that is too long", { bucket: "a".repeat(64) }],
  ["a prefix that is too long", { prefix: "a".repeat(513) }],
  ["a role that is too long", { role_arn: `${destinationBody().role_arn}${"a".repeat(2048)}` }],
  ["a key that is too long", { kms_key_id: "a".repeat(2049) }],
  ["another format", { format: "jsonl" }],
])("a body with %s is refused", async (_, over) => {
  const got = await send(server().url + path, { method: "POST", body: { ...destinationBody(), ...over } });
  expect(got).toMatchObject({ status: 400, body: { code: "bad_request" } });
  expect(operations()).toEqual([]);
});

test.each([
  ["an external id", { external_id: "x".repeat(32) }],
  ["a role of the service", { service_role_arn: destinationBody().role_arn }],
  ["a count of failures", { consecutive_failures: 0 }],
  ["a place in the log", { last_exported_cursor: "MSAx" }],
  ["a status that is none", { status: "deleted" }],
])("a change of %s is refused", async (_, change) => {
  const got = await send(server().url + one, { method: "PATCH", body: change });
  expect(got).toMatchObject({ status: 400, body: { code: "bad_request" } });
  expect(operations()).toEqual([]);
});

test("a change that was overtaken is 409, which the client repeats by itself", async () => {
  server().operations.answer("destinations.update", refusal("conflict"));
  const got = await send(server().url + one, { method: "PATCH", body: { prefix: "" } });
  expect(got).toMatchObject({ status: 409, body: { code: "conflict" } });
  expect(got.headers.get("x-should-retry")).toBeNull();
});

test("a key of one project knows of none", async () => {
  const headers = { authorization: `Bearer ${knownKey({ projectId: "default" as ProjectId })}` };
  const ask = async (method: string, where: string, body?: object): Promise<unknown> => {
    const got = await send(server().url + where, { method, headers, ...(body && { body }) });
    return [got.status, got.body.code];
  };
  const refused = [403, "insufficient_scope"];
  expect(await ask("GET", path)).toEqual(refused);
  expect(await ask("POST", path, destinationBody())).toEqual(refused);
  expect(await ask("GET", one)).toEqual(refused);
  expect(await ask("PATCH", one, {})).toEqual(refused);
  expect(await ask("DELETE", one)).toEqual(refused);
  expect(await ask("POST", `${one}/test`)).toEqual(refused);
  expect(operations()).toEqual([]);
});
