import { afterEach, expect, test } from "vitest";
import { done, refusal } from "../../../src/base/errors.js";
import { send, sharedServer } from "../../support/http/http-server.js";

const server = sharedServer();
const ask = (path: string, headers: Record<string, string> = {}) =>
  send(`${server().url}/browsers/mine/telemetry${path}`, { headers });
const asked = (): unknown => server().operations.calls.at(-1)?.args[1];
const all = { types: [], categories: [] };
afterEach(() => void server().operations.calls.splice(0));

test.each([
  ["", {}, "now"],
  ["?replay=all", {}, "oldest"],
  ["?replay=some", {}, "now"],
  ["", { "last-event-id": "7" }, { after: 7 }],
  ["?replay=all", { "last-event-id": "7" }, { after: 7 }],
  ["?replay=all", { "last-event-id": "0" }, "now"],
  ["?replay=all", { "last-event-id": "00" }, "now"],
  ["?replay=all", { "last-event-id": "" }, "oldest"],
])("a stream%s with %j begins at %j", async (query, headers, start) => {
  const got = await ask(`/stream${query}`, headers);
  expect([got.status, asked()]).toEqual([200, { start, filter: all }]);
  expect(got.text).toBe(
    ':\n\nid: 1\ndata: {"seq":1,"event":{"ts":1,"type":"cdp_connect","category":"connection"}}\n\n',
  );
});

test("a stream names its types, and is refused for an id that is none", async () => {
  await ask("/stream?type=cdp_connect,cdp_command&type=api_call");
  expect(asked()).toMatchObject({ filter: { types: ["cdp_connect", "cdp_command", "api_call"] } });
  expect((await ask("/stream", { "last-event-id": "x" })).status).toBe(400);
});

const at = Date.parse("2026-01-31T12:00:00Z");
test.each([
  ["?since=2026-01-31T12:00:00Z", { limit: 20, order: "asc", filter: all, since: at }],
  [
    "?since=2026-01-31T12:00:00Z&until=2026-01-31T13:00:00%2B01:00&limit=7",
    { limit: 7, since: at, until: at },
  ],
  ["?offset=7&since=5m", { limit: 20, order: "asc", filter: all, cursor: 7 }],
  ["?order=desc", { limit: 20, order: "desc", filter: all }],
  ["?order=desc&offset=7", { limit: 20, order: "desc", filter: all, cursor: 7 }],
  ["?order=desc&offset=0", { limit: 20, order: "desc", filter: all }],
  ["?order=desc&offset=000", { limit: 20, order: "desc", filter: all }],
  [
    "?offset=7&category=page,control&type=page_load",
    { filter: { types: ["page_load"], categories: ["page", "control"] } },
  ],
  ["?offset=7&category=page&category=monitor", { filter: { types: [], categories: ["page", "monitor"] } }],
])("events%s are asked for as %j", async (query, then) => {
  expect((await ask(`/events${query}`)).status).toBe(200);
  expect(asked()).toMatchObject(then);
  if (Object.hasOwn(then, "order")) expect(asked()).toEqual(then);
});

test("a time may be told as how long ago; without one it is five minutes", async () => {
  const ago = async (query: string): Promise<number> => {
    await ask(`/events${query}`);
    return Math.round((Date.now() - (asked() as { since: number }).since) / 60_000);
  };
  expect([
    await ago(""),
    await ago("?since=90m"),
    await ago("?since=1h30m"),
    await ago("?since=7200s"),
  ]).toEqual([5, 90, 90, 120]);
});

test.each([
  "?order=desc&since=5m",
  "?since=yesterday",
  "?until=5",
  "?offset=x",
  "?offset=-1",
  "?category=weather",
  "?limit=101",
  "?order=up",
])("events%s are refused", async (query) => {
  expect(await ask(`/events${query}`)).toMatchObject({ status: 400, body: { code: "bad_request" } });
  expect(server().operations.calls).toEqual([]);
});

test("a page says where the next begins; the last says 0", async () => {
  const event = { seq: 7, text: '{"ts":1}' };
  server().operations.answer("events.history", done({ events: [event], next: 7, hasMore: true }));
  const page = await ask("/events");
  const names = ["x-has-more", "x-next-offset", "x-limit"];
  expect([page.body, names.map((name) => page.headers.get(name))]).toEqual([
    [{ seq: 7, event: { ts: 1 } }],
    ["true", "7", "20"],
  ]);
  server().operations.answer("events.history", done({ events: [event], next: 7, hasMore: false }));
  const last = await ask("/events");
  expect(names.map((name) => last.headers.get(name))).toEqual(["false", "0", "20"]);
});

test("what is refused is told as everywhere", async () => {
  server().operations.answer("events.stream", refusal("browser_not_found"));
  expect(await ask("/stream")).toMatchObject({ status: 404, body: { code: "browser_not_found" } });
  server().operations.answer("events.history", refusal("too_many_requests", { retryAfterSeconds: 1 }));
  expect(await ask("/events")).toMatchObject({ status: 429, body: { code: "too_many_requests" } });
});

const solved = { captcha_type: "turnstile", status: "success", duration_ms: 8200.5 };
const report = (json: object) =>
  send(`${server().url}/browsers/mine/telemetry/captcha_solve_results`, { method: "POST", body: json });

test.each([
  solved,
  {
    ...solved,
    error_code: "ERROR_NO_SLOT",
    task_id: "t-1",
    website_host: "a.example:8443",
    website_path: "/login",
  },
])("what came of a captcha is reported as %j", async (result) => {
  expect((await report(result)).status).toBe(204);
  expect(server().operations.calls.at(-1)?.operation).toBe("sessions.reportCaptcha");
  expect(asked()).toEqual(result);
});

test.each([
  {},
  { ...solved, captcha_type: "sudoku" },
  { ...solved, status: "solved" },
  { ...solved, duration_ms: -1 },
  { ...solved, duration_ms: "8200" },
  { ...solved, token: "the solution" },
  { ...solved, website_path: "/login?token=secret" },
  { ...solved, website_path: "/login#secret" },
  { ...solved, website_path: "https://a.example/" },
  { ...solved, website_host: "user@a.example" },
  { ...solved, task_id: "a b" },
  { ...solved, error_code: "x".repeat(129) },
])("what came of a captcha is not reported as %j", async (result) => {
  expect((await report(result)).status).toBe(400);
  expect(server().operations.calls).toEqual([]);
});
