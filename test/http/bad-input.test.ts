import { expect, test } from "vitest";
import { key, send, sharedServer } from "../support/http/http-server.js";
import { tryBadInputs } from "../support/http/openapi-inputs.js";

const server = sharedServer({ logsRequests: false });
const details = async (path: string, body: unknown, method = "POST"): Promise<string[]> => {
  const got = await send(`${server().url}${path}`, { method, body });
  expect(got).toMatchObject({ status: 400, body: { code: "bad_request" } });
  return got.body.details.map((detail: { message: string }) => detail.message).sort();
};

test("every field of every operation in every wrong kind is answered 400 with a detail about it, and reaches no operation", async () => {
  const { tried, faults } = await tryBadInputs({
    url: server().url,
    key,
    names: { browser_pools: "herd", browsers: "mine" },
  });
  expect(tried).toBeGreaterThan(1500);
  expect(faults).toEqual([]);
  expect(server().operations.calls).toEqual([]);
  expect(server().lines.filter((line) => line.level === "error")).toEqual([]);
});

test("all faults are told at once, in plain words", async () => {
  const body = {
    size: 0,
    viewport: { width: "wide" },
    extensions: [{ id: 1 }, 3],
    memory: "3GiB",
    timeout_seconds: 15.5,
    telemetry: "on",
    name: "a b",
    colour: "red",
  };
  expect(await details("/browser_pools", body)).toEqual([
    "colour: is not a known field",
    "extensions[0].id: must be a string",
    "extensions[1]: must be an object",
    "memory: must be one of 1GiB, 2GiB, 4GiB, 8GiB, 16GiB",
    "name: must be 1 to 255 letters, digits, dots, underscores or hyphens",
    "size: must be at least 1",
    "telemetry: must be an object or null",
    "timeout_seconds: must be a whole number",
    "viewport.height: is required",
    "viewport.width: must be a whole number",
  ]);
});

test("of thousands of faults the first hundred are told, and how many are left out", async () => {
  const unknown = Object.fromEntries(Array.from({ length: 9000 }, (_, at) => [`k${at}`, 0]));
  const got = await send(`${server().url}/browser_pools`, { method: "POST", body: { size: 1, ...unknown } });
  expect(got).toMatchObject({ status: 400, body: { code: "bad_request" } });
  expect(got.body.details).toHaveLength(101);
  expect(got.body.details[0]).toEqual({ code: "invalid_input", message: "k0: is not a known field" });
  expect(got.body.details[100]).toEqual({ code: "more", message: "8900 more are left out" });
});

test("half of a surrogate pair is refused wherever it stands, and what only looks like one is not", async () => {
  const post = (text: string) =>
    send(`${server().url}/org/api_keys`, {
      method: "POST",
      text,
      headers: { "content-type": "application/json" },
    });
  for (const text of [
    '{"name":"\\ud800"}',
    '{"name":"a","policy":{"\\uDFFF":1}}',
    '{"name":"\\udc00\\ud83d"}',
  ])
    expect(await post(text)).toMatchObject({
      status: 400,
      body: { details: [{ message: "body: must not have half of a surrogate pair" }] },
    });
  for (const text of ['{"name":"\\ud83d\\ude00"}', '{"name":"C:\\\\ud800"}'])
    expect(await post(text)).toMatchObject({ status: 201 });
});

test("what has a form of its own is told what form that is", async () => {
  const body = { url: "https://a.example/", method: "GET\n", headers: { "a b": "c", d: "e\r\nf" } };
  expect(await details("/browsers/mine/curl", body)).toEqual([
    "headers.d: must have no characters but those of a header: no line breaks, none beyond Latin-1",
    "headers: each name must be 1 to 256 of the characters that RFC 9110 (5.6.2) has in names",
    "method: must be 1 to 20 letters",
  ]);
});

test("a fault inside one of two alternatives is told alone", async () => {
  expect(await details("/browser_pools/herd", { telemetry: { enabled: "yes", colour: 1 } }, "PATCH")).toEqual(
    ["telemetry.colour: is not a known field", "telemetry.enabled: must be true or false"],
  );
});

test("a tag is refused for its name, its value and its number", async () => {
  const tags = { ["n".repeat(129)]: "a", b: "ümlaut" };
  expect(await details("/browsers", { tags })).toEqual([
    "tags.b: must be at most 256 letters, digits, spaces or characters of _.:/=+@-",
    "tags: each name must have at most 128 characters",
  ]);
});

test("a number beyond all bounds is none", async () => {
  const headers = { "content-type": "application/json" };
  const got = await send(`${server().url}/browser_pools`, {
    method: "POST",
    text: '{"size": 1e400, "fill_rate_per_minute": 1e400}',
    headers,
  });
  expect(got.body.details.map((detail: { message: string }) => detail.message).sort()).toEqual([
    "fill_rate_per_minute: must be a number",
    "size: must be a whole number",
  ]);
});

test("a body with a million faults is answered with the first, at once", async () => {
  const text = JSON.stringify({ size: 1, extensions: Array.from({ length: 1_000_000 }, () => 1) });
  const got = await send(`${server().url}/browser_pools`, {
    method: "POST",
    text,
    headers: { "content-type": "application/json" },
  });
  expect(got).toMatchObject({ status: 400, body: { code: "bad_request" } });
  expect(got.body.details).toHaveLength(1);
});

test("nothing of a refused value is repeated, and a long name is cut", async () => {
  const [message = ""] = await details("/browsers", { ["x".repeat(10_000)]: "hunter2" });
  expect(message).not.toContain("hunter2");
  expect(message.length).toBeLessThan(150);
});

test("a body larger than its operation takes is refused, and one as large as a policy may be is taken", async () => {
  const large = { browser_policy: { Blob: "x".repeat(5 * 1024 * 1024) } };
  expect(
    await send(`${server().url}/browser_pools`, { method: "POST", body: { size: 1, ...large } }),
  ).toMatchObject({ status: 201 });
  expect(
    await send(`${server().url}/browser_pools/herd/release`, { method: "POST", body: large }),
  ).toMatchObject({ status: 400, body: { code: "body_too_large" } });
});

test("a URL that is not validly percent-encoded is refused, and a name that cannot be one is not found", async () => {
  expect(await send(`${server().url}/browsers/%zz`)).toMatchObject({
    status: 400,
    body: { code: "bad_request" },
  });
  for (const name of [
    "%00",
    "a%2Fb",
    "%7Bslot%7D",
    "a%20b",
    "%F0%9F%90%8E",
    "x".repeat(256),
    "x".repeat(9000),
  ]) {
    expect(await send(`${server().url}/browsers/${name}`)).toMatchObject({
      status: 404,
      body: { code: "browser_not_found" },
    });
    expect(await send(`${server().url}/browser_pools/${name}`)).toMatchObject({
      status: 404,
      body: { code: "pool_not_found" },
    });
  }
  expect(server().operations.calls).toEqual([]);
});

test("query keys that are not known are ignored; known ones are checked", async () => {
  expect(await send(`${server().url}/browsers?fields=all&__proto__[x]=1&limit=5`)).toMatchObject({
    status: 200,
  });
  expect(server().operations.calls[0]?.args[0]).toEqual({ limit: 5, offset: 0, status: "active" });
});

test.each([
  ["Idempotency-Key", "two words", "Idempotency-Key: must be 1 to 255 visible ASCII characters"],
  ["Idempotency-Key", "x".repeat(256), "Idempotency-Key: must be 1 to 255 visible ASCII characters"],
  ["X-Remuda-Lease-Id", "short", "X-Remuda-Lease-Id: must be a lease id, 24 lower-case letters and digits"],
])("a malformed %s is refused", async (name, value, message) => {
  const got = await send(`${server().url}/browser_pools/herd/acquire`, {
    method: "POST",
    headers: { [name]: value },
  });
  expect(got).toMatchObject({
    status: 400,
    body: { code: "bad_request", details: [{ code: "invalid_input", message }] },
  });
  expect(server().operations.calls).toEqual([]);
});

test.each([
  ["2026-02-30T00:00:00Z", "February has 28 days"],
  ["2025-02-29T12:00:00Z", "2025 is no leap year"],
  ["2026-04-31t00:00:00z", "April has 30 days"],
  ["2026-01-31T24:00:00Z", "a day has no 25th hour"],
])("%s is taken for no other instant: %s", async (start) => {
  const query = new URLSearchParams({ start, end: "2026-02-01T00:00:00Z" });
  const got = await send(`${server().url}/audit-logs?${query}`);
  const message = "start: must be an instant such as 2026-01-31T12:00:00Z";
  expect(got).toMatchObject({ status: 400, body: { details: [{ code: "invalid_input", message }] } });
  const leap = new URLSearchParams({ start: "2024-02-29 23:59Z", end: "2024-03-01T23:59:59.5-23:59" });
  expect(await send(`${server().url}/audit-logs?${leap}`)).toMatchObject({ status: 200 });
});

test("a lease named differently in header and body is refused", async () => {
  const body = { session_id: "x", lease_id: "a".repeat(24) };
  const headers = { "x-remuda-lease-id": "b".repeat(24), authorization: `Bearer ${key}` };
  expect(
    await send(`${server().url}/browser_pools/herd/release`, { method: "POST", body, headers }),
  ).toMatchObject({ status: 400, body: { code: "bad_request" } });
});
