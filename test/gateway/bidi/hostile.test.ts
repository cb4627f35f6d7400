import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import type { GatewayLimits } from "../../../src/gateway/limits.js";
import { until } from "../../support/browser/chromium-until.js";
import { DrivenClock } from "../../support/driven-clock.js";
import { endsAt } from "../../support/gateway/client-ends.js";
import { type GatewayBrowser, openGatewayBrowser } from "../../support/gateway/gateway-browser.js";
import { type BidiReply, connectBidi, type RawBidi } from "../../support/gateway/raw-bidi.js";
import { mappersOf } from "../../support/gateway/mappers.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";

const mebibyte = 1024 * 1024;

let browser: GatewayBrowser;
beforeAll(async () => {
  browser = await openGatewayBrowser();
});
afterAll(async () => browser.close());
beforeEach(() => browser.bed.newLease(browser.chromium.id));

/** A browser of the test's own, behind other limits. */
async function openWith(limits: Partial<GatewayLimits>): Promise<GatewayBrowser> {
  const own = await openGatewayBrowser({}, { limits });
  onTestFinished(() => own.close());
  return own;
}

const begin = async (of = browser): Promise<{ client: RawBidi; context: string }> => {
  const client = await connectBidi(of.bidi());
  return { client, context: await client.begin() };
};

const mappers = (): number[] => mappersOf(process.pid);

test("a mapper that dies closes its own client, and nobody else's", async () => {
  await expect.poll(mappers).toEqual([]);
  const victim = await begin();
  const [pid = 0] = mappers();
  const other = await begin();
  process.kill(pid, "SIGKILL");
  expect(await victim.client.closed).toEqual({
    code: 1011,
    reason: "the BiDi mapper of this client has ended",
  });
  expect(await other.client.evaluate(other.context, "6 * 7")).toBe(42);
  await other.client.close();
});

test("no mapper outlives its client", async () => {
  const [closes, falls] = [await begin(), await begin()];
  await expect.poll(mappers).toHaveLength(2);
  await closes.client.close();
  falls.client.socket.terminate();
  await expect.poll(mappers).toEqual([]);
});

test("a mapper that needs more heap than it may closes its client with the reason", async () => {
  const own = await openWith({ bidiHeapBytes: 64 * mebibyte });
  const ends = endsAt(own);
  const { client } = await begin(own);
  const other = await connectRaw(own.url());
  const functionDeclaration = `() => "${"x".repeat(8 * mebibyte)}"`;
  const params = { functionDeclaration };
  for (let id = 100; id < 130; id += 1)
    client.socket.send(JSON.stringify({ id, method: "script.addPreloadScript", params }));
  expect((await client.closed).code).toBe(1011);
  expect(ends).toEqual(["cut"]);
  expect((await other.send("Browser.getVersion")).result).toBeDefined();
  await other.close();
});

test("answers of every length come whole", async () => {
  const { client, context } = await begin();
  for (const length of [1, 65_000, 65_536, 200_000, 300_000, 3 * mebibyte])
    expect(await client.evaluate(context, `"y".repeat(${length})`)).toHaveLength(length);
  await client.close();
});

const misshapen: Readonly<Record<string, string>> = {
  deep: `{"id":7,"method":"session.status","params":{"a":${"[".repeat(400)}${"]".repeat(400)}}}`,
  "of many values": `{"id":7,"method":"session.status","params":{"a":[${"{},".repeat(mebibyte)}{}]}}`,
  "no JSON, of 14 MiB": '"{'.repeat(7 * mebibyte),
  "no object": "[]",
  "without an id": '{"method":"session.status","params":{}}',
  "with a negative id": '{"id":-1,"method":"session.new","params":{}}',
  "without params": '{"id":7,"method":"session.status"}',
};

test("messages out of shape are invalid arguments, and the next is answered", async () => {
  const { client, context } = await begin();
  const answers: BidiReply[] = [];
  client.socket.on("message", (data: Buffer) => answers.push(JSON.parse(data.toString()) as BidiReply));
  for (const message of Object.values(misshapen)) client.socket.send(message);
  expect(await client.evaluate(context, "6 * 7")).toBe(42);
  const told = answers.filter(({ type }) => type === "error").map(({ error }) => error);
  expect(told).toEqual(Object.keys(misshapen).map(() => "invalid argument"));
  await client.close();
});

test("messages beyond the limit, and binary ones, close the client", async () => {
  const [long, binary] = [await begin(), await begin()];
  long.client.socket.send("x".repeat(16 * mebibyte + 1));
  expect((await long.client.closed).code).toBe(1009);
  binary.client.socket.send(Buffer.from("{}"), { binary: true });
  expect((await binary.client.closed).code).toBe(1003);
});

const impatient = { highWaterBytes: mebibyte, cutBytes: 8 * mebibyte, holdMs: 500 };
const storm = "void setInterval(() => console.log('x'.repeat(100_000)), 1)";

test("a mapper that stands still under a storm of events is cut, and the others go on", async () => {
  const own = await openWith(impatient);
  const { client, context } = await begin(own);
  await client.send("session.subscribe", { events: ["log.entryAdded"] });
  const other = await connectRaw(own.url());
  const session = await other.attach(context);
  for (const pid of mappers()) process.kill(pid, "SIGSTOP");
  await other.evaluate(storm, session);
  expect(await client.closed).toMatchObject({
    code: 1013,
    reason: expect.stringContaining("the BiDi mapper is too"),
  });
  expect(await other.evaluate("6 * 7", session)).toBe(42);
  await other.close();
});

/** More than the system takes of a connection that nobody reads from. */
const mostSentBytes = 64 * mebibyte;

test("a client that reads nothing of many events is cut for that, and the others go on", async () => {
  const clock = new DrivenClock();
  const own = await openGatewayBrowser({}, { limits: impatient, clock });
  onTestFinished(() => own.close());
  const { client, context } = await begin(own);
  await client.send("session.subscribe", { events: ["log.entryAdded"] });
  const other = await connectRaw(own.url());
  const session = await other.attach(context);
  client.socket.pause();
  const ends = endsAt(own);
  const before = clock.pending;
  const isHeld = (): boolean => clock.pending > before;
  const { counts } = own.bed;
  // The mapper has read each event before the next comes, so that none but its client is too slow.
  while (!isHeld()) {
    const { sent } = counts;
    expect(sent).toBeLessThan(mostSentBytes);
    void other.send("Runtime.evaluate", { expression: "console.log('x'.repeat(100_000))" }, session);
    await until("the event is sent on", () => isHeld() || counts.sent - sent > 100_000);
  }
  const answer = other.evaluate("6 * 7", session);
  await clock.advance(impatient.holdMs - 1);
  expect(ends).toEqual([]);
  await clock.advance(1);
  expect(ends).toEqual(["cut"]);
  expect(await answer).toBe(42);
  client.socket.resume();
  expect(await client.closed).toEqual({ code: 1013, reason: "too slow with reading" });
  await other.close();
});
