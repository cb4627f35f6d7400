import type { lookup } from "node:dns";
import { createServer } from "node:http";
import { inspect } from "node:util";
import { Server as ChainServer } from "proxy-chain";
import { afterEach, expect, test } from "vitest";
import { systemClock } from "../../src/base/clock.js";
import { Secret } from "../../src/base/crypto/secret.js";
import { makeReservedEndpoints } from "../../src/egress/reserved-endpoints.js";
import type { Rules } from "../../src/egress/rules.js";
import type { Upstream } from "../../src/registry/proxies/proxy.js";
import { dialThrough } from "../../src/egress/upstream.js";
import { type BedOptions, type EgressBed, openEgress, patterns } from "../support/egress/egress-bed.js";
import { ask, bodyOf, openTunnel, readText } from "../support/egress/egress-client.js";
import { listenOn, openOrigin, openRawOrigin } from "../support/egress/egress-origin.js";
import { openUpstream, type TestUpstream, upstreamPassword } from "../support/egress/egress-upstream.js";

const closing: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

const rulesThrough = (upstream: Upstream): Rules => ({ allowed: null, privates: [], routes: [], upstream });

async function bedFor(rules: Rules, options: BedOptions = {}): Promise<EgressBed> {
  const bed = await openEgress(rules, options);
  closing.push(() => bed.egress.close());
  return bed;
}

const protocols = ["http", "https", "socks5"] as const;

async function open(protocol: (typeof protocols)[number]): Promise<TestUpstream> {
  const origin = await openOrigin((asked, reply) =>
    reply.end(`origin ${asked.method} ${asked.url} ${asked.headers.host}`),
  );
  const upstream = await openUpstream({ protocol, port: origin.port });
  closing.push(
    () => origin.close(),
    () => upstream.close(),
  );
  return upstream;
}

test.each(protocols)(
  "tunnels go through a proxy that speaks %s and resolves the name itself",
  async (protocol) => {
    const { upstream, asked } = await open(protocol);
    const bed = await bedFor(rulesThrough(upstream));
    const { status, socket } = await openTunnel(bed.port, "site.test:8443");
    expect(status).toBe(200);
    socket.write("GET /in HTTP/1.1\r\nHost: inside\r\nConnection: close\r\n\r\n");
    expect(bodyOf(await readText(socket))).toContain("origin GET /in inside");
    expect(asked).toEqual([`${protocol === "socks5" ? "SOCKS" : "CONNECT"} site.test:8443`]);
    expect(bed.outcomes).toEqual(["upstream"]);
    expect(bed.egress.usage().bytesReceived).toBeGreaterThan(0);
  },
);

test.each(protocols)("plain requests go through a proxy that speaks %s", async (protocol) => {
  const { upstream, asked, accepted } = await open(protocol);
  const bed = await bedFor(rulesThrough(upstream));
  const isAbsolute = protocol !== "socks5";
  const text = isAbsolute ? "plain site.test" : "origin GET /p?q site.test";
  expect(await ask(bed.port, "http://site.test/p?q")).toMatchObject({ status: 200, text });
  expect(await ask(bed.port, "http://site.test:80/p?q")).toMatchObject({ status: 200, text });
  expect(asked).toEqual(
    isAbsolute ? ["GET http://site.test/p?q", "GET http://site.test/p?q"] : ["SOCKS site.test:80"],
  );
  expect(accepted).toHaveLength(1);
});

test.each(protocols)(
  "a wrong password for %s is 502 for tunnels and plain requests, naming the proxy and no secret",
  async (protocol) => {
    const { upstream } = await open(protocol);
    const wrong = { ...upstream, password: new Secret("wr0ng-secret") };
    const bed = await bedFor(rulesThrough(wrong));
    const { status, answer } = await openTunnel(bed.port, "site.test:443");
    const plain = await ask(bed.port, "http://site.test/");
    expect([status, plain.status]).toEqual([502, 502]);
    expect(plain.headers["x-remuda-egress"]).toBe("failed");
    for (const text of [answer, plain.text]) expect(text).toContain(upstream.id);
    const all = inspect([answer, plain, bed.lines], { depth: 9 });
    for (const secret of [
      "wr0ng-secret",
      upstreamPassword,
      Buffer.from("user:wr0ng-secret").toString("base64"),
    ])
      expect(all).not.toContain(secret);
  },
);

test.each(protocols)("an error of %s carries no password, whatever is printed of it", async (protocol) => {
  const { upstream } = await open(protocol);
  const wrong = { ...upstream, password: new Secret("wr0ng-secret") };
  const error: unknown = await dialThrough(
    wrong,
    { host: "site.test", port: 443 },
    {
      connectMs: 60_000,
      clock: systemClock,
      resolve: async () => [],
      reserved: makeReservedEndpoints([]),
      proxyHosts: patterns("127.0.0.1"),
    },
  ).catch((failure: unknown) => failure);
  expect(error).toBeInstanceOf(Error);
  expect(inspect(error, { depth: 9, showHidden: true })).not.toMatch(/wr0ng-secret|Basic /);
});

test("a proxy whose certificate the bundle does not cover is refused", async () => {
  const { upstream, asked } = await open("https");
  const { caBundle: _, ...bare } = upstream;
  const bed = await bedFor(rulesThrough(bare));
  expect(await openTunnel(bed.port, "site.test:443")).toMatchObject({ status: 502 });
  expect(await ask(bed.port, "http://site.test/")).toMatchObject({ status: 502 });
  expect(asked).toEqual([]);
});

test.each(protocols)("an origin that speaks first is heard through %s", async (protocol) => {
  const origin = await openRawOrigin((socket) => socket.end("220 I speak first"));
  const { upstream, close } = await openUpstream({ protocol, port: origin.port });
  closing.push(() => origin.close(), close);
  const bed = await bedFor(rulesThrough(upstream));
  const { status, answer, socket } = await openTunnel(bed.port, "mail.test:25");
  expect(status).toBe(200);
  expect(bodyOf(answer) + (answer.includes("first") ? "" : await readText(socket))).toBe("220 I speak first");
});

test("routes choose in their order, bypass goes directly, and a private target never goes through a proxy", async () => {
  const [one, other] = [await open("http"), await open("http")];
  const origin = await openOrigin((_, reply) => reply.end("direct"));
  closing.push(() => origin.close());
  const rules: Rules = {
    allowed: null,
    privates: patterns("127.0.0.1", "direct.test"),
    routes: [{ hosts: patterns("*.one.test"), upstream: { ...one.upstream, id: "one" } }],
    upstream: { ...other.upstream, id: "other", bypass: patterns("direct.test") },
  };
  const bed = await bedFor(rules, { parts: { resolve: async () => ["127.0.0.1"] } });
  await ask(bed.port, "http://a.one.test/");
  await ask(bed.port, "http://two.test/");
  expect(await ask(bed.port, `http://direct.test:${origin.port}/`)).toMatchObject({ text: "direct" });
  expect(await ask(bed.port, `http://127.0.0.1:${origin.port}/`)).toMatchObject({ text: "direct" });
  expect(await ask(bed.port, "http://10.0.0.1/")).toMatchObject({ status: 403 });
  expect([one.asked, other.asked]).toEqual([["GET http://a.one.test/"], ["GET http://two.test/"]]);
});

test("a proxy is not dialled where the service itself listens", async () => {
  const { upstream, accepted } = await open("http");
  const bed = await bedFor(rulesThrough(upstream), {
    parts: { reserved: makeReservedEndpoints([{ host: "0.0.0.0", port: upstream.port }]) },
  });
  expect(await openTunnel(bed.port, "site.test:443")).toMatchObject({ status: 502 });
  expect(accepted).toHaveLength(0);
});

test.each([
  ["an address", "127.0.0.1", []],
  ["a name", "proxy.corp", ["127.0.0.1"]],
  ["a name with a public address besides", "proxy.corp", ["93.184.216.34", "127.0.0.1"]],
  ["a name of this machine", "proxy.localhost", ["93.184.216.34"]],
] as const)("a server at a private address is no proxy, named by %s", async (_, host, addresses) => {
  const requests: string[] = [];
  const origin = await openOrigin((asked, reply) => {
    requests.push(`${asked.method} ${asked.url}`);
    reply.end("private");
  });
  closing.push(() => origin.close());
  const upstream: Upstream = { id: "inner", protocol: "http", host, port: origin.port, bypass: [] };
  const resolve = async (): Promise<readonly string[]> => addresses;
  const bed = await bedFor(rulesThrough(upstream), { parts: { proxyHosts: [], resolve } });
  const answer = await ask(bed.port, "http://site.test/any/path");
  expect(answer).toMatchObject({ status: 502 });
  expect(answer.text).toContain(
    "The proxy inner is at a private address, and egress.proxy_hosts does not name it",
  );
  expect(await openTunnel(bed.port, "site.test:443")).toMatchObject({ status: 502 });
  expect(requests).toEqual([]);
  const opened = await bedFor(rulesThrough(upstream), {
    parts: { proxyHosts: patterns(host), resolve: async () => ["127.0.0.1"] },
  });
  expect(await ask(opened.port, "http://site.test/")).toMatchObject({ status: 200, text: "private" });
  expect(requests).toEqual(["GET http://site.test/"]);
});

test("what is open for proxies is not open for pages", async () => {
  const { upstream, accepted } = await open("http");
  const bed = await bedFor(rulesThrough(upstream));
  expect(await ask(bed.port, `http://127.0.0.1:${upstream.port}/`)).toMatchObject({ status: 403 });
  expect(accepted).toEqual([]);
});

test("a name of a proxy is judged at each dial, by the addresses that it has then", async () => {
  const proxy = await listenOn(createServer(), "0.0.0.0");
  closing.push(() => proxy.close());
  const asked: string[] = [];
  proxy.server.on("connect", ({ url }, socket) => {
    asked.push(String(url));
    socket.end("HTTP/1.1 200 OK\r\n\r\n");
  });
  const answers = [["127.0.0.1"], ["127.0.0.2"], ["127.0.0.1"]];
  const upstream: Upstream = { id: "p", protocol: "http", host: "proxy.corp", port: proxy.port, bypass: [] };
  const bed = await bedFor(rulesThrough(upstream), {
    parts: { proxyHosts: patterns("127.0.0.1"), resolve: async () => answers.shift() ?? [] },
  });
  const statuses = [];
  for (const target of ["one.test:443", "two.test:443", "three.test:443"])
    statuses.push((await openTunnel(bed.port, target)).status);
  expect(statuses).toEqual([200, 502, 200]);
  expect(asked).toEqual(["one.test:443", "three.test:443"]);
});

test("a tunnel through a proxy is cut when the rules name another", async () => {
  const { upstream } = await open("https");
  const bed = await bedFor(rulesThrough(upstream));
  const { socket } = await openTunnel(bed.port, "site.test:443");
  const over = readText(socket);
  await bed.egress.apply(rulesThrough({ ...upstream, id: "another" }));
  await over;
  await expect.poll(() => bed.egress.usage().connections).toBe(0);
});

test("a proxy that others have written carries both kinds", async () => {
  const origin = await openOrigin((asked, reply) => reply.end(`origin ${asked.url} ${asked.headers.host}`));
  const chain = new ChainServer({
    port: 0,
    host: "127.0.0.1",
    prepareRequestFunction: ({ username, password }) => ({
      requestAuthentication: username !== "user" || password !== upstreamPassword,
      failMsg: "no",
      // Whatever name it is asked for is the origin.
      dnsLookup: ((_name: string, _options: object, found: (error: null, addresses: object) => void) =>
        found(null, [{ address: "127.0.0.1", family: 4 }])) as unknown as typeof lookup,
    }),
  });
  await chain.listen();
  closing.push(
    () => origin.close(),
    () => chain.close(true),
  );
  const bed = await bedFor(
    rulesThrough({
      id: "chain",
      protocol: "http",
      host: "127.0.0.1",
      port: chain.port,
      username: "user",
      password: new Secret(upstreamPassword),
      bypass: [],
    }),
  );
  expect(await ask(bed.port, `http://site.test:${origin.port}/p`)).toMatchObject({
    status: 200,
    text: `origin /p site.test:${origin.port}`,
  });
  const { socket, status } = await openTunnel(bed.port, `site.test:${origin.port}`);
  expect(status).toBe(200);
  socket.write("GET /t HTTP/1.1\r\nHost: inside\r\nConnection: close\r\n\r\n");
  expect(bodyOf(await readText(socket))).toContain("origin /t inside");
});
