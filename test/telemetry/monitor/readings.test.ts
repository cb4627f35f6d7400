import { beforeEach, expect, test } from "vitest";
import { consoleCall, exception, longConsoleCall } from "../../../src/telemetry/monitor/console-events.js";
import { interactionOf } from "../../../src/telemetry/monitor/interaction-events.js";
import { bodyOf, NetworkRequests } from "../../../src/telemetry/monitor/network-events.js";
import { type DroppedMessages, MessageRates } from "../../../src/telemetry/monitor/rates.js";
import { DrivenClock } from "../../support/driven-clock.js";

const string = (value: string): object => ({ type: "string", value });

test("a console's arguments are told as it would show them", () => {
  const object = {
    type: "object",
    description: "Object",
    preview: { properties: [{ name: "a", type: "number", value: "1" }], overflow: true },
  };
  const args = [
    string("text"),
    { type: "number", value: 1.5 },
    { type: "number", unserializableValue: "-0" },
    { type: "undefined" },
    { type: "object", subtype: "null", value: null },
    object,
    { type: "object", subtype: "error", description: "Error: e\n    at x" },
  ];
  expect(consoleCall({ type: "warning", args, timestamp: 1 })).toMatchObject({
    type: "console_log",
    data: {
      level: "warning",
      text: "text",
      args: ["text", "1.5", "-0", "undefined", "null", "{a: 1, …}", "Error: e\n    at x"],
    },
    wasCut: false,
  });
});

test("many and long arguments are cut, and that is said", () => {
  const { data, wasCut } = consoleCall({
    type: "error",
    args: Array.from({ length: 100 }, () => string("y".repeat(100_000))),
  });
  expect(wasCut).toBe(true);
  expect(JSON.stringify(data).length).toBeLessThan(64 * 1024);
});

test("an exception is told with its place", () => {
  const exceptionDetails = {
    text: "Uncaught",
    lineNumber: 3,
    columnNumber: 4,
    url: "https://example.org/a.js",
    exception: { type: "object", subtype: "error", description: "Error: thrown\n    at a" },
    stackTrace: {
      callFrames: [{ functionName: "a", scriptId: "7", url: "", lineNumber: 3, columnNumber: 4 }],
    },
  };
  expect(exception({ timestamp: 1, exceptionDetails })).toMatchObject({
    type: "console_error",
    data: {
      text: "Uncaught Error: thrown\n    at a",
      line: 3,
      column: 4,
      source_url: "https://example.org/a.js",
      stack_trace: { callFrames: [{ functionName: "a" }] },
    },
  });
});

test.each(["plain", 'quo"te', "back\\slash", "smile 😀", "tab\t"])(
  "of a call that is too long to be read the beginning is told: %s",
  (begin) => {
    const params = { type: "error", args: [string(begin + "z".repeat(500_000))], timestamp: 1 };
    const frame = Buffer.from(JSON.stringify({ method: "Runtime.consoleAPICalled", params }));
    const reading = longConsoleCall([frame.subarray(0, 65_536), frame.subarray(65_536)]);
    expect(reading).toMatchObject({ type: "console_error", wasCut: true });
    expect(String(reading?.data["text"]).startsWith(`${begin}zzz`)).toBe(true);
  },
);

test.each([
  '{"type":"click"',
  "null",
  "[]",
  '{"type":"other"}',
  `{"type":"click","text":"${"t".repeat(9999)}"}`,
])("a message of another form from the script is passed over: %s", (payload) =>
  expect(interactionOf({ payload })).toBeUndefined(),
);

let requests: NetworkRequests;
beforeEach(() => (requests = new NetworkRequests()));

const sent = (
  id: string,
  headers: object = {},
  url = "https://a:b@example.org/x",
): ReturnType<NetworkRequests["sent"]> =>
  requests.sent(
    {
      requestId: id,
      loaderId: "L",
      frameId: "F",
      type: "Fetch",
      documentURL: "https://example.org/",
      initiator: { type: "script" },
      request: { url, method: "POST", headers, postData: "a=1" },
    },
    3,
  );
const responded = (id: string, mimeType: string, more: object = {}): unknown =>
  requests.responded({
    requestId: id,
    response: { status: 200, statusText: "OK", mimeType, headers: {}, ...more },
  });

test("headers that let somebody in are told by their length", () => {
  const headers = {
    Authorization: "Bearer secret",
    Cookie: "a=secret",
    "X-Api-Key": "secret",
    "x-auth-token": "secret",
    Accept: "text/html",
  };
  expect(sent("1", headers).data["headers"]).toEqual({
    Authorization: "[13 characters]",
    Cookie: "[8 characters]",
    "X-Api-Key": "[6 characters]",
    "x-auth-token": "[6 characters]",
    Accept: "text/html",
  });
});

test.each([
  "X-Authorization",
  "AUTHENTICATION",
  "X-Amz-Security-Token",
  "x-amz-signature",
  "X-Auth-Key",
  "X-Cookie",
  "Cookie2",
  "set-cookie2",
  "Ocp-Apim-Subscription-Key",
  "x-functions-key",
  "dd-application-key",
  "X-Parse-Master-Key",
  "x-ms-encryption-key",
  "x-goog-encryption-key",
  "x-amz-server-side-encryption-customer-key",
  "x-license_keys",
  "X-AppKey",
  "x-signing-key2-id",
  "Key",
  "X-Access-Key",
  "X-Goog-Iap-Jwt-Assertion",
  "X-CSRF",
  "X-Passwd",
])("a header by any such name is told by its length: %s", (name) =>
  expect(sent("1", { [name]: "secret" }).data["headers"]).toEqual({ [name]: "[6 characters]" }),
);

test.each(["X-Author", "Keep-Alive", "X-Keyboard", "Host", "Sec-Fetch-Mode", "__proto__", "constructor"])(
  "a header that lets nobody in is told as it is: %s",
  (name) => {
    const headers = JSON.parse(`{${JSON.stringify(name)}:"plain"}`) as object;
    const told = sent("1", headers).data["headers"];
    expect(JSON.stringify(told)).toBe(JSON.stringify(headers));
  },
);

test("a response is told when it is whole, with what was asked and how", () => {
  const { data } = sent("1");
  expect(data).toMatchObject({ request_id: "1", method: "POST", post_data: "a=1", nav_seq: 3 });
  expect(responded("1", "application/json")).toBeUndefined();
  expect(requests.finished({ requestId: "1", encodedDataLength: 100 })).toMatchObject({
    data: { request_id: "1", status: 200, url: "https://example.org/x", mime_type: "application/json" },
    bodyBytes: 8192,
  });
  expect(requests.finished({ requestId: "1" })).toBeUndefined();
});

test("each event of a request whose address was cut says so", () => {
  const url = `http://example.org/${"x".repeat(5000)}`;
  const cut = { data: { url: expect.stringMatching(/x\.\.\.\[truncated\]$/) }, wasCut: true };
  for (const id of ["1", "2", "3"]) expect(sent(id, {}, url)).toMatchObject(cut);
  responded("1", "text/html");
  expect(requests.finished({ requestId: "1" })).toMatchObject(cut);
  expect(requests.failed({ requestId: "2" })).toMatchObject(cut);
  expect(responded("3", "text/html", { headers: { "X-Remuda-Egress": "denied" } })).toMatchObject(cut);
});

test("an interaction whose element has a long name says that it was cut", () => {
  const payload = JSON.stringify({ type: "key", key: "Enter", selector: "s".repeat(2000), tag: "A" });
  expect(interactionOf({ payload })).toMatchObject({ kind: "told", told: { wasCut: true } });
});

test.each([
  ["text/html", 100, 4096],
  ["application/json", 1_000_000, 0],
  ["image/png", 100, 0],
])("of %s with %i bytes so much is told: %i", (mime, encodedDataLength, bodyBytes) => {
  sent("1");
  responded("1", mime);
  expect(requests.finished({ requestId: "1", encodedDataLength })).toMatchObject({ bodyBytes });
});

test("bodies are cut, and binary ones are not told", () => {
  expect(bodyOf({ body: "x".repeat(5000), base64Encoded: false }, 4096).wasCut).toBe(true);
  expect(bodyOf({ body: "eHh4", base64Encoded: true }, 4096)).toEqual({ wasCut: false });
});

test("what the browser's way out has answered is a proxy error", () => {
  sent("1", {}, "http://example.org/x");
  expect(responded("1", "application/json", { headers: { "X-Remuda-Egress": "denied" } })).toMatchObject({
    type: "proxy_error",
    data: { code: "destination_blocked", request_id: "1", method: "POST" },
  });
});

test.each([
  ["a server behind a tunnel", "https://example.org/x", {}],
  ["a page's service worker", "http://localhost/x", { fromServiceWorker: true }],
])("%s can not pretend a proxy error", (_, url, more) => {
  sent("1", {}, url);
  expect(responded("1", "text/html", { headers: { "X-Remuda-Egress": "denied" }, ...more })).toBeUndefined();
});

test("a request's method is cut like any text that a page chooses", () => {
  const request = { url: "https://example.org/x", method: "M".repeat(200_000) };
  const { data, wasCut } = requests.sent({ requestId: "1", request }, 1);
  expect([String(data["method"]).length, wasCut]).toEqual([256, true]);
});

test("of a flood so much is read, and what is lost is told once a second", async () => {
  const clock = new DrivenClock();
  const told: DroppedMessages[] = [];
  const rates = new MessageRates({ clock, told: (lost) => told.push(lost) > 0 });
  const take = (kind: string): boolean => rates.takes(kind, 100) || (rates.lose(kind), false);
  const count = (kind: string): number =>
    Array.from({ length: 10_000 }, () => take(kind)).filter(Boolean).length;
  expect([count("console"), count("page")]).toEqual([3000, 3000]);
  await clock.advance(1000);
  expect(told).toEqual([{ count: 14_000, byMethod: { console: 7000, page: 7000 } }]);
  expect(count("console")).toBe(750);
  rates.close();
  expect(told[1]).toEqual({ count: 9250, byMethod: { console: 9250 } });
  expect(clock.pending).toBe(0);
});

test("long messages are read as far as their bytes allow", () => {
  const rates = new MessageRates({ clock: new DrivenClock(), told: () => true });
  const taken = Array.from({ length: 100 }, () => rates.takes("console", 256 * 1024)).filter(Boolean);
  expect(taken).toHaveLength(16);
  rates.close();
});
