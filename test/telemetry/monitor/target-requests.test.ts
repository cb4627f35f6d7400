import { beforeEach, expect, test } from "vitest";
import { NetworkRequests } from "../../../src/telemetry/monitor/network-events.js";
import { RequestBytes } from "../../../src/telemetry/monitor/target-requests.js";

const most = 16 * 1024 * 1024;
let bytes: RequestBytes;
let requests: NetworkRequests;
beforeEach(() => {
  bytes = new RequestBytes();
  requests = new NetworkRequests(bytes);
});

const sent = (id: string, session = requests): unknown =>
  session.sent({ requestId: id, loaderId: "L", type: "Fetch", request: { url: "https://example.org/x" } }, 1);
const answered = (id: string, answer: object = {}, session = requests): void => {
  sent(id, session);
  session.responded({ requestId: id, response: { status: 200, mimeType: "text/html", ...answer } });
};
const headersOf = (value: string): object =>
  Object.fromEntries(Array.from({ length: 64 }, (_, at) => [`h${at}`, value]));
const sessionsOf = (count: number): readonly NetworkRequests[] =>
  Array.from({ length: count }, () => new NetworkRequests(bytes));

test("a page that opens requests without end fills no memory", () => {
  for (let id = 0; id < 5000; id += 1) answered(String(id));
  expect(requests.finished({ requestId: "3999" })).toBeUndefined();
  expect(requests.finished({ requestId: "4000" })).toBeDefined();
  expect(requests.finished({ requestId: "4999" })).toBeDefined();
});

test("of requests with long heads a browser's sessions hold so much together, and what is over counts no more", () => {
  const sessions = sessionsOf(40);
  const headers = headersOf("v".repeat(1000));
  for (const session of sessions)
    for (let id = 0; id < 20; id += 1) answered(String(id), { headers }, session);
  expect(bytes.held).toBeGreaterThan(15 * 1024 * 1024);
  expect(bytes.held).toBeLessThanOrEqual(most);
  for (const session of sessions) session.clear();
  expect(bytes.held).toBe(0);
});

test("a session that holds much loses its own requests, and not those of others", () => {
  const [small, large] = [new NetworkRequests(bytes), new NetworkRequests(bytes)];
  answered("first", {}, small);
  const headers = headersOf("v".repeat(1000));
  for (let id = 0; id < 300; id += 1) answered(String(id), { headers }, large);
  for (const id of ["second", "third"]) answered(id, { headers }, small);
  expect(large.finished({ requestId: "0" })).toBeUndefined();
  expect(large.finished({ requestId: "299" })).toBeDefined();
  for (const requestId of ["first", "second", "third"]) expect(small.finished({ requestId })).toBeDefined();
});

test("of the type of an answer no more is held than is told", () => {
  const mimeType = `text/html;${"x".repeat(100_000)}`;
  for (let id = 0; id < 1000; id += 1) answered(String(id), { mimeType });
  expect(bytes.held).toBeLessThan(1024 * 1024);
  expect(requests.finished({ requestId: "0" })).toMatchObject({
    data: { mime_type: expect.stringMatching(/^text\/html;x+\.\.\.\[truncated\]$/) },
    wasCut: true,
    bodyBytes: 4096,
  });
});

test("a text with characters beyond Latin-1 counts for what it takes, and a request for what it is kept in", () => {
  const bytesFor = (statusText: string): number => {
    const before = bytes.held;
    answered(statusText, { statusText });
    return bytes.held - before;
  };
  expect(bytesFor("ü")).toBeGreaterThan(256);
  expect(bytesFor("ü".repeat(100)) - bytesFor("ü".repeat(99))).toBe(3);
  expect(bytesFor("ж".repeat(80)) - bytesFor("ж".repeat(79))).toBe(6);
  expect(bytesFor("ж".repeat(80))).toBe(0);
});

test("an answer that is told twice counts once", () => {
  answered("1", { headers: headersOf("v") });
  const { held } = bytes;
  requests.responded({ requestId: "1", response: { status: 200, mimeType: "text/html" } });
  expect(bytes.held).toBeLessThan(held);
  expect(requests.failed({ requestId: "1" }).data).toMatchObject({ url: "https://example.org/x" });
  expect(bytes.held).toBe(0);
});
