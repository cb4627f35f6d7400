import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CdpSession } from "../../../src/gateway/cdp/sessions.js";
import { TargetHolds } from "../../../src/gateway/cdp/target-holds.js";
import { DrivenClock } from "../../support/driven-clock.js";
import { engines } from "../../support/browser/chromium-kinds.js";
import { type GatewayBrowser, openGatewayBrowser } from "../../support/gateway/gateway-browser.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";

class Client {
  pauses = 0;
  readonly told: string[] = [];
  wait(): void {
    this.pauses += 1;
  }
  proceed(): void {
    this.pauses -= 1;
  }
  deliver(reply: string): void {
    this.told.push(reply);
  }
}

const sessionOf = (
  owner: Client,
  { target, parent }: { target?: string; parent?: CdpSession<Client> } = {},
): CdpSession<Client> => ({
  id: "session",
  owner,
  isRoot: parent === undefined,
  children: new Set(),
  calls: new Map(),
  kept: new Set(),
  domains: new Set(),
  ...(target !== undefined && { target }),
  ...(parent && { parent }),
});

const bed = () => {
  const clock = new DrivenClock();
  const holds = new TargetHolds<Client>(clock);
  const sent: string[] = [];
  const says = (session: CdpSession<Client>, what: string, method = "Page.reload"): void => {
    if (!holds.keeps(session, { id: 1, method }, () => says(session, what, method))) sent.push(what);
  };
  return { clock, holds, sent, says };
};

test("what is said to a held page, or to what is attached through it, waits; other clients go on", () => {
  const { holds, sent, says } = bed();
  const [one, other] = [new Client(), new Client()];
  const page = sessionOf(one, { target: "page" });
  const release = holds.hold(["page"]);
  says(page, "to the page");
  says(sessionOf(one, { target: "worker", parent: page }), "to its worker");
  says(sessionOf(other, { target: "another" }), "to another page");
  says(sessionOf(other), "to the browser");
  expect([sent, one.pauses, other.pauses]).toEqual([["to another page", "to the browser"], 1, 0]);
  release();
  expect([sent.slice(2), one.pauses]).toEqual([["to the page", "to its worker"], 0]);
});

test("what follows what waits waits too, so that a client's commands stay in their order", () => {
  const { holds, sent, says } = bed();
  const client = new Client();
  const release = holds.hold(["page"]);
  says(sessionOf(client, { target: "page" }), "first");
  says(sessionOf(client), "second");
  expect(sent).toEqual([]);
  release();
  expect(sent).toEqual(["first", "second"]);
});

test("two holds of a page are over with the later one, and the order holds across the first's end", () => {
  const { holds, sent, says } = bed();
  const client = new Client();
  const [first, second] = [holds.hold(["page"]), holds.hold(["page", "frame"])];
  says(sessionOf(client, { target: "page" }), "one");
  says(sessionOf(client), "two");
  first();
  first();
  expect([sent, client.pauses]).toEqual([[], 1]);
  second();
  expect([sent, client.pauses]).toEqual([["one", "two"], 0]);
});

test("a message that only Chromium can address waits, too", () => {
  const { holds, sent, says } = bed();
  const release = holds.hold(["page"]);
  says(sessionOf(new Client()), "carried", "Target.sendMessageToTarget");
  expect(sent).toEqual([]);
  release();
  expect(sent).toEqual(["carried"]);
});

test("a command that cannot be sent ends alone: its client is told, and what waits behind it is sent", () => {
  const { holds, sent, says } = bed();
  const [one, other] = [new Client(), new Client()];
  const release = holds.hold(["page"]);
  holds.keeps(
    sessionOf(one, { target: "page" }),
    { id: 7, method: "Page.reload", session: "session" },
    () => {
      throw new TypeError("Cannot convert object to primitive value");
    },
  );
  says(sessionOf(one), "behind it");
  says(sessionOf(other, { target: "page" }), "of another");
  release();
  expect([sent, one.pauses, other.pauses]).toEqual([["behind it", "of another"], 0, 0]);
  expect(one.told.map((told) => JSON.parse(told) as unknown)).toEqual([
    { id: 7, error: { code: -32000, message: "The message cannot be processed" }, sessionId: "session" },
  ]);
});

test("a page that never lets go is waited for 2 s; a client that has gone is forgotten", async () => {
  const { clock, holds, sent, says } = bed();
  const [staying, leaving] = [new Client(), new Client()];
  holds.hold(["page"]);
  says(sessionOf(staying, { target: "page" }), "stays");
  says(sessionOf(leaving, { target: "page" }), "leaves");
  holds.forget(leaving);
  await clock.advance(1999);
  expect(sent).toEqual([]);
  await clock.advance(1);
  expect(sent).toEqual(["stays"]);
});

describe.each(engines)("%s", (_, spec) => {
  let browser: GatewayBrowser;
  beforeAll(async () => {
    browser = await openGatewayBrowser(spec, { bridgeClock: new DrivenClock() });
  });
  afterAll(() => browser.close());

  test("a client's commands to a held page are answered after the hold, in their order", async () => {
    const client = await connectRaw(browser.url());
    const { result } = await client.send("Target.getTargets");
    const infos = result?.["targetInfos"] as { readonly targetId: string; readonly type: string }[];
    const target = infos.find(({ type }) => type === "page")?.targetId ?? "";
    const session = await client.attach(target);
    const other = await connectRaw(browser.url());
    const release = browser.bed.local(browser.chromium.id).bridge.holds.hold([target]);
    const answered: string[] = [];
    const asked = ["globalThis.count = 1", "count += 1", "count += 1"].map(async (expression) =>
      answered.push(String(await client.evaluate(expression, session))),
    );
    expect((await other.send("Browser.getVersion")).result).toBeDefined();
    expect(answered).toEqual([]);
    release();
    await Promise.all(asked);
    expect(answered).toEqual(["1", "2", "3"]);
  });
});
