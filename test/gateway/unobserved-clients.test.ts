import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import type { Command } from "../../src/gateway/cdp/command.js";
import { judgeAndWrite } from "../../src/gateway/gates/judge.js";
import type { ClientObserver } from "../../src/gateway/ports.js";
import type { ReportedCommand } from "../../src/telemetry/commands/tell.js";
import { until } from "../support/browser/chromium-until.js";
import { type GatewayBrowser, openGatewayBrowser } from "../support/gateway/gateway-browser.js";
import { connectRaw, type RawCdp } from "../support/gateway/raw-cdp.js";

const deaf: ClientObserver = { opened() {}, message() {}, command() {}, closed() {}, requested() {} };
const commands = 50;
/** Stands in every command of the test, and in no answer. */
const mark = "a mark of these commands";

let browser: GatewayBrowser;
let client: RawCdp;
/** How often the relay asked whether somebody listens. */
let looks: number;
let observer: ClientObserver | undefined;

beforeAll(async () => {
  browser = await openGatewayBrowser();
  Object.defineProperty(browser.bed, "observer", { get: () => ((looks += 1), observer) });
});
afterAll(() => browser.close());
beforeEach(async () => {
  observer = undefined;
  browser.bed.newLease(browser.chromium.id);
  client = await connectRaw(browser.url());
});
afterEach(() => client.close());

/** Commands within messages, which have to be parsed to be judged; gives how often that was done. */
async function parses(sessionId: string): Promise<number> {
  const parse = vi.spyOn(JSON, "parse");
  try {
    for (let id = 1; id <= commands; id += 1) {
      const message = JSON.stringify({ id, method: "Input.insertText", params: { text: mark } });
      await client.send("Target.sendMessageToTarget", { sessionId, message });
    }
    return parse.mock.calls.filter(([text]) => String(text).includes(mark)).length;
  } finally {
    parse.mockRestore();
  }
}

async function firstPage(): Promise<string> {
  const { result } = await client.send("Target.getTargets");
  const targets = result?.targetInfos as { targetId: string; type: string }[];
  return targets.find(({ type }) => type === "page")?.targetId ?? "";
}

async function attachNested(targetId?: string): Promise<string> {
  const to = { targetId: targetId ?? (await firstPage()), flatten: false };
  const attached = await client.send("Target.attachToTarget", to);
  return String(attached.result?.sessionId);
}

test("while nobody listens a command is parsed for the gate alone, and for an event where somebody does", async () => {
  const session = await attachNested();
  expect(await parses(session)).toBe(2 * commands);
  observer = deaf;
  expect(await parses(session)).toBe(3 * commands);
});

test("while nobody listens each message costs one look at whether somebody does, and a command another", async () => {
  await client.send("Browser.getVersion");
  looks = 0;
  for (let sent = 0; sent < commands; sent += 1) await client.send("Browser.getVersion");
  expect(looks).toBe(3 * commands);
});

/** A command that counts how often its text is read. */
function countedCommand() {
  const counted = { reads: 0 };
  const params = {
    get text() {
      counted.reads += 1;
      return mark;
    },
  };
  const command: Command = { id: 1, method: "Input.insertText", params };
  return { command, counted };
}

test.each([
  { isObserved: false, reads: 1 },
  { isObserved: true, reads: 2 },
])("a thread reads a long command's text $reads times where isObserved is $isObserved", (row) => {
  const { command, counted } = countedCommand();
  const judged = judgeAndWrite(Buffer.from(JSON.stringify({ id: 1, method: "Input.insertText" })), {
    gate: () => ({ kind: "pass", command }),
    context: { directories: browser.chromium.directories },
    isObserved: row.isObserved,
  });
  expect(judged).toMatchObject({ judgement: { kind: "pass" } });
  expect(JSON.stringify(judged).includes("text_length")).toBe(row.isObserved);
  expect(counted.reads).toBe(row.reads);
});

const longText = "x".repeat(2 * 1024 * 1024);
const insertion = { method: "Input.insertText", params: { text: longText } };
const carried = (sessionId: string, message: object) => ({
  method: "Target.sendMessageToTarget",
  params: { sessionId, message: JSON.stringify({ id: 77, ...message }) },
});
test.each([
  ["one of its own", () => insertion, ["Input.insertText"]],
  ["one in a message", (nested: string) => carried(nested, insertion), ["Input.insertText"]],
  [
    "one in a message in a message",
    (nested: string) => carried(nested, carried("none", insertion)),
    ["Input.insertText"],
  ],
  ["one that is not reported", () => ({ method: "Runtime.evaluate", params: { expression: longText } }), []],
])(
  "of a long command that was read before somebody listened, and goes to the browser after, the method is told: %s",
  async (_, commandOf, methods) => {
    const page = await firstPage();
    const { method, params } = commandOf(await attachNested(page));
    const session = method === carried("", {}).method ? undefined : await client.attach(page);
    const release = browser.bed.local(browser.chromium.id).bridge.holds.hold([page]);
    const before = browser.bed.counts.received;
    const answer = client.send(method, params, session);
    await until("the message has come", () => browser.bed.counts.received > before);
    const told: ReportedCommand[] = [];
    observer = { ...deaf, command: (_client, command) => told.push(command) };
    release();
    await answer;
    expect(told).toEqual(methods.map((reported) => ({ method: reported })));
  },
);
