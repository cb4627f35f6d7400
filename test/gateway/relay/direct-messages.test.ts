import { createServer, type Server } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import { newLeaseId, newBrowserId, newControlId, onDemandPartition } from "../../../src/base/ids.js";
import { Secret } from "../../../src/base/crypto/secret.js";
import { sign } from "../../../src/base/crypto/signature.js";
import { makeDirectMessages, makeSendDirectly } from "../../../src/gateway/relay/direct-messages.js";
import type { CommandResult } from "../../../src/gateway/relay/command-result.js";
import { makeAskNode } from "../../../src/lease/ask-node.js";
import type { LeasedBrowser } from "../../../src/pool/browser.js";
import type { NodeMessage, Messages } from "../../../src/pool/ports/messages.js";
import type { Log } from "../../../src/base/log.js";
import { rawAnswer } from "../../support/gateway/gateway-bed.js";
import { silentLog } from "../../support/browser/chromium-host.js";
import { makeLogBook } from "../../support/http/http-server.js";
import { nodeA } from "../../support/store/pool-bed.js";

const secret = new Secret("the_cluster_secret_of_this_suite");
const message: NodeMessage = {
  kind: "cut",
  browser: newBrowserId(onDemandPartition),
  lease: newLeaseId(),
  why: "over",
};

/** What is answered at once is answered within that, however busy the machine is. */
const limitMs = 60_000;
/** How far the node's clock is ahead. */
let aheadMs = 0;
let server: Server;
let heard: NodeMessage[];
let outcome: CommandResult | undefined;
beforeEach(async () => {
  heard = [];
  [outcome, aheadMs] = [{ isDone: true }, 0];
  const way = makeDirectMessages({
    secret,
    clock: { ...systemClock, now: () => Date.now() + aheadMs },
    log: silentLog,
    receive: async (given) => {
      heard.push(given);
      return outcome;
    },
  });
  server = createServer((request, response) => {
    if (!way.request(request, response)) response.writeHead(418).end();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await once(server, "close");
});

const portOf = (): number => (server.address() as AddressInfo).port;
const tell = (
  more: {
    secret?: Secret;
    port?: number;
    suspected?: number[];
    findNode?: () => Promise<undefined>;
    log?: Log;
  } = {},
) =>
  makeSendDirectly({
    secret: more.secret ?? secret,
    clock: systemClock,
    log: more.log ?? silentLog,
    unreachable: ({ port }) => void more.suspected?.push(port),
    findNode: more.findNode ?? (async () => ({ host: "127.0.0.1", port: more.port ?? portOf() })),
  });
const post = (body: string, signature?: string) =>
  fetch(`http://127.0.0.1:${portOf()}/node/messages`, {
    method: "POST",
    body,
    headers: signature === undefined ? {} : { "x-remuda-signature": signature },
  });

test("a message that is too long is refused, and keeps nothing from the next request on its connection", async () => {
  const head = "Host: 127.0.0.1\r\nContent-Length: 3000000\r\n\r\n";
  const next = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
  const sent = `POST /node/messages HTTP/1.1\r\n${head}${"x".repeat(3_000_000)}${next}`;
  const answers = await rawAnswer(portOf(), sent);
  expect([...answers.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status))).toEqual([400, 418]);
  expect(heard).toEqual([]);
});

test("a message that is signed is heard, and its outcome is the answer", async () => {
  expect(await tell()(nodeA, message, limitMs)).toEqual({ kind: "done" });
  expect(heard).toEqual([message]);
  outcome = { isDone: false, text: "it would not" };
  expect(await tell()(nodeA, message, limitMs)).toEqual({ kind: "failed", text: "it would not" });
});

test("one that is not signed by this deployment, changed or old is not heard", async () => {
  const body = JSON.stringify(message);
  const old = sign(secret, body, Date.now() - 120_000);
  for (const signature of [
    undefined,
    "",
    old,
    sign(new Secret("another_secret_altogether"), body, Date.now()),
    sign(secret, `${body} `, Date.now()),
  ]) {
    expect((await post(body, signature)).status).toBe(401);
  }
  expect((await post("x".repeat(1_100_000), "1.a")).status).toBe(400);
  expect(heard).toEqual([]);
  expect(
    await tell({ secret: new Secret("another_secret_altogether") })(nodeA, message, limitMs),
  ).toBeUndefined();
});

test.each([-3600, -120, 120, 3600])(
  "a node whose clock is %d s ahead hears a message once it is signed by that clock, and the log says so",
  async (seconds) => {
    aheadMs = seconds * 1000;
    const { log, lines } = makeLogBook();
    const begun = performance.now();
    expect(await tell({ log })(nodeA, message, limitMs)).toEqual({ kind: "done" });
    const tookMs = performance.now() - begun;
    expect(heard).toEqual([message]);
    const [said] = lines.filter(({ message: text }) => text === "clock of a node differs from the control's");
    expect(said).toMatchObject({ level: "warn", fields: { node: nodeA } });
    // The node's time comes within the request, in whole ms.
    expect(Math.abs(Number(said?.fields["aheadMs"]) - aheadMs)).toBeLessThanOrEqual(tookMs + 2);
  },
);

test("a node tells its time for one message alone, with the secret, and once", async () => {
  const body = JSON.stringify(message);
  const old = sign(secret, body, Date.now() - 120_000);
  const told = async (signature: string): Promise<string | null> =>
    (await post(body, signature)).headers.get("x-remuda-clock");
  expect(await told(old)).toMatch(/^\d+\.[\w-]+$/);
  expect(await told(sign(new Secret("another_secret_altogether"), body, Date.now()))).toBeNull();
  expect(await told(sign(secret, `${body} `, Date.now() - 120_000))).toBeNull();
  // Whoever has kept a message cannot sign it anew: not with the time that is told for it either.
  expect(await told((await told(old)) ?? "")).toBeNull();
  expect(heard).toEqual([]);
});

test("a time that somebody else tells, or tells for another message, is not signed by", async () => {
  const signatures: string[] = [];
  const later = String(Date.now() + 3_600_000);
  const liar = createServer((request, response) => {
    const given = String(request.headers["x-remuda-signature"]);
    signatures.push(given);
    const lies = [sign(new Secret("another_secret_altogether"), `clock\n${given}`, Number(later))];
    lies.push(sign(secret, "clock\nof another message", Number(later)), `${later}.`);
    response.writeHead(401, { "x-remuda-clock": lies[signatures.length % lies.length] ?? "" }).end("{}");
  }).listen(0, "127.0.0.1");
  await once(liar, "listening");
  const { port } = liar.address() as AddressInfo;
  for (let round = 0; round < 3; round += 1)
    expect(await tell({ port })(nodeA, message, limitMs)).toBeUndefined();
  liar.close();
  await once(liar, "close");
  expect(signatures).toHaveLength(3);
});

test("a node that tells another time each time is asked twice", async () => {
  let asked = 0;
  const wild = createServer((request, response) => {
    asked += 1;
    const given = String(request.headers["x-remuda-signature"]);
    const at = Date.now() + asked * 3_600_000;
    response.writeHead(401, { "x-remuda-clock": sign(secret, `clock\n${given}`, at) }).end("{}");
  }).listen(0, "127.0.0.1");
  await once(wild, "listening");
  expect(await tell({ port: (wild.address() as AddressInfo).port })(nodeA, message, limitMs)).toBeUndefined();
  wild.close();
  await once(wild, "close");
  expect(asked).toBe(2);
});

test("a node that does not have the browser, is not there or does not answer in time has not been told", async () => {
  outcome = undefined;
  expect(await tell()(nodeA, message, limitMs)).toBeUndefined();
  const silent = createServer(() => {}).listen(0, "127.0.0.1");
  await once(silent, "listening");
  expect(await tell({ port: (silent.address() as AddressInfo).port })(nodeA, message, 100)).toBeUndefined();
  silent.closeAllConnections();
  silent.close();
  await once(silent, "close");
  expect(await tell({ port: 1 })(nodeA, message, limitMs)).toBeUndefined();
});

test("only a node that takes no connection, or does not answer in time, is suspected", async () => {
  const suspected: number[] = [];
  outcome = undefined;
  await tell({ suspected })(nodeA, message, limitMs);
  await tell({ suspected, secret: new Secret("another_secret_altogether") })(nodeA, message, limitMs);
  await tell({ suspected, findNode: async () => undefined })(nodeA, message, limitMs);
  await tell({ suspected, findNode: () => Promise.reject(new Error("Redis is away")) })(
    nodeA,
    message,
    limitMs,
  );
  expect(suspected).toEqual([]);
  const silent = createServer(() => {}).listen(0, "127.0.0.1");
  await once(silent, "listening");
  const { port } = silent.address() as AddressInfo;
  await tell({ suspected, port })(nodeA, message, 100);
  silent.closeAllConnections();
  silent.close();
  await once(silent, "close");
  await tell({ suspected, port })(nodeA, message, limitMs);
  expect(suspected).toEqual([port, port]);
});

test("other paths and methods are not its own", async () => {
  expect((await fetch(`http://127.0.0.1:${portOf()}/node/messages`)).status).toBe(418);
  expect((await fetch(`http://127.0.0.1:${portOf()}/node`, { method: "POST" })).status).toBe(418);
});

const browser = { id: message.browser, node: nodeA, lease: { id: message.lease } } as LeasedBrowser;
const wireThat = (toNode: Messages["toNode"]): Messages => ({ toNode, toControl: async () => {} });

test("a question that Redis does not bring is answered directly", async () => {
  const lost = makeAskNode(newControlId(), {
    messages: wireThat(async () => {}),
    clock: systemClock,
    sendDirectly: tell(),
  });
  expect(await lost.ask(browser, { kind: "navigate", url: "about:blank" })).toEqual({ kind: "done" });
  const away = makeAskNode(newControlId(), {
    messages: wireThat(() => Promise.reject(new Error("Redis is away"))),
    clock: systemClock,
    sendDirectly: tell(),
  });
  expect(await away.ask(browser, { kind: "navigate", url: "about:blank" })).toEqual({ kind: "done" });
  expect(heard).toMatchObject([{ kind: "ask", lease: message.lease }, { kind: "ask" }]);
});

test("one that Redis brings is not asked twice", async () => {
  const asking = makeAskNode(newControlId(), {
    clock: systemClock,
    sendDirectly: tell(),
    messages: wireThat(async (_, asked) => {
      if (asked.kind === "ask") asking.answered({ kind: "answer", question: asked.question, ok: true });
    }),
  });
  expect(await asking.ask(browser, { kind: "navigate", url: "about:blank" })).toEqual({ kind: "done" });
  expect(heard).toEqual([]);
});

test("a node that hears neither way is silent; where Redis is away as well, that is what is told", async () => {
  const deaf = makeAskNode(newControlId(), {
    messages: wireThat(async () => {}),
    clock: systemClock,
    sendDirectly: tell({ port: 1 }),
  });
  expect(await deaf.ask(browser, { kind: "navigate", url: "about:blank" }, 700)).toEqual({ kind: "silent" });
  const away = makeAskNode(newControlId(), {
    messages: wireThat(() => Promise.reject(new Error("Redis is away"))),
    clock: systemClock,
    sendDirectly: tell({ port: 1 }),
  });
  await expect(away.ask(browser, { kind: "navigate", url: "about:blank" })).rejects.toThrow("Redis is away");
});
