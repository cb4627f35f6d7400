import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { systemClock } from "../../src/base/clock.js";
import { Secret } from "../../src/base/crypto/secret.js";
import { makeReservedEndpoints } from "../../src/egress/reserved-endpoints.js";
import { makeProbe, type ProbeParts } from "../../src/egress/proxy-check.js";
import type { Upstream } from "../../src/registry/proxies/proxy.js";
import { patterns, resolveBy } from "../support/egress/egress-bed.js";
import { openOrigin } from "../support/egress/egress-origin.js";
import {
  makeCertificate,
  type Origin,
  startHttpProxy,
  startOrigin,
  startSilent,
  startSocksProxy,
  type UpstreamProxy,
} from "../support/egress/upstream-proxies.js";
import { freePort } from "../support/free-port.js";

const certificate = makeCertificate();
const credentials = { username: "me", password: "pässword: 1" };
const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});
const opened = async <Thing extends { close(): Promise<void> }>(starting: Promise<Thing>): Promise<Thing> => {
  const thing = await starting;
  open.push(thing);
  return thing;
};

const upstream = (port: number, over: Partial<Upstream> = {}): Upstream => ({
  id: "p1",
  protocol: "http",
  host: "127.0.0.1",
  port,
  bypass: [],
  ...over,
});
const signed = { username: credentials.username, password: new Secret(credentials.password) };
const probeWith = (over: Partial<ProbeParts> = {}) =>
  makeProbe({
    clock: systemClock,
    reserved: makeReservedEndpoints([]),
    proxyHosts: patterns("127.0.0.0/8"),
    defaultUrl: "http://127.0.0.1:1/",
    limitMs: 5000,
    resolve: resolveBy({
      "origin.example": ["93.184.216.34"],
      "inside.example": ["10.0.0.7"],
      "mixed.example": ["93.184.216.34", "127.0.0.1"],
    }),
    ...over,
  });
const check = (through: Upstream, url?: string, over: Partial<ProbeParts> = {}) =>
  probeWith(over)(through, url, new AbortController().signal);
const urlOf = ({ port }: Origin, path = "/"): string => `http://origin.example:${port}${path}`;

const available = { kind: "probed", found: { status: "available", ipAddress: "203.0.113.7" } };
const unavailable = { kind: "probed", found: { status: "unavailable" } };

const kinds: [string, () => Promise<UpstreamProxy>, Partial<Upstream>][] = [
  ["http", () => startHttpProxy(), {}],
  ["http with credentials", () => startHttpProxy({ credentials }), signed],
  [
    "https with a bundle and credentials",
    () => startHttpProxy({ credentials, tls: certificate }),
    { ...signed, protocol: "https", caBundle: certificate.cert },
  ],
  ["socks5", () => startSocksProxy(), { protocol: "socks5" }],
  ["socks5 with credentials", () => startSocksProxy(credentials), { ...signed, protocol: "socks5" }],
];
test.each(kinds)(
  "a request goes through a proxy of kind %s, by the name of its host, and the address it comes from is told",
  async (_, start, over) => {
    const [origin, proxy] = [await opened(startOrigin()), await opened(start())];
    expect(await check(upstream(proxy.port, over), urlOf(origin, "/where?a=1"))).toEqual(available);
    expect(proxy.targets).toEqual([`origin.example:${origin.port}`]);
    expect(origin.requests).toEqual([`GET origin.example:${origin.port} /where?a=1`]);
  },
);

test.each([
  ["none", {}],
  ["a wrong password", { username: "me", password: new Secret("other") }],
  ["a wrong name", { ...signed, username: "you" }],
] as [string, Partial<Upstream>][])(
  "with %s where credentials are asked for, it is unavailable in each protocol",
  async (_, over) => {
    const origin = await opened(startOrigin());
    const [http, https, socks] = [
      await opened(startHttpProxy({ credentials })),
      await opened(startHttpProxy({ credentials, tls: certificate })),
      await opened(startSocksProxy(credentials)),
    ];
    expect(await check(upstream(http.port, over), urlOf(origin))).toEqual(unavailable);
    expect(
      await check(
        upstream(https.port, { ...over, protocol: "https", caBundle: certificate.cert }),
        urlOf(origin),
      ),
    ).toEqual(unavailable);
    expect(await check(upstream(socks.port, { ...over, protocol: "socks5" }), urlOf(origin))).toEqual(
      unavailable,
    );
    expect(await check(upstream(http.port, over), "https://origin.example/")).toEqual(unavailable);
    expect(origin.requests).toEqual([]);
  },
);

test.each([
  ['{"ip":"2001:DB8::1"}', "2001:db8::1"],
  [" 203.0.113.9\n", "203.0.113.9"],
  ["<html>", undefined],
  ['{"ip": 7}', undefined],
  ["", undefined],
  ["203.0.113.9.".repeat(999), undefined],
  ["localhost", undefined],
])("of the answer %j it reads the address %s", async (body, ipAddress) => {
  const [origin, proxy] = [await opened(startOrigin()), await opened(startHttpProxy())];
  origin.answer((__, response) => void response.writeHead(403).end(body));
  expect(await check(upstream(proxy.port), urlOf(origin))).toEqual({
    kind: "probed",
    found: { status: "available", ...(ipAddress === undefined ? {} : { ipAddress }) },
  });
});

test("a body that never ends takes no longer than the check may", async () => {
  const [origin, proxy] = [await opened(startOrigin()), await opened(startHttpProxy())];
  origin.answer((_, response) => void response.write("203"));
  expect(await check(upstream(proxy.port), urlOf(origin), { limitMs: 3000 })).toEqual({
    kind: "probed",
    found: { status: "available" },
  });
  origin.answer((_, response) => {
    const more = (): void => void (response.destroyed || response.write("x".repeat(65_536), more));
    more();
  });
  expect(await check(upstream(proxy.port), urlOf(origin))).toEqual({
    kind: "probed",
    found: { status: "available" },
  });
});

test("one that is not there, says nothing, speaks no HTTP, or whose certificate is not trusted is unavailable", async () => {
  const origin = await opened(startOrigin());
  const [silent, plain, secure, socks] = [
    await opened(startSilent()),
    await opened(startHttpProxy()),
    await opened(startHttpProxy({ tls: certificate })),
    await opened(startSocksProxy()),
  ];
  const closed = await freePort();
  const other = makeCertificate().cert;
  const cases: Upstream[] = [
    upstream(closed),
    upstream(closed, { protocol: "socks5" }),
    upstream(silent.port),
    upstream(silent.port, { protocol: "https" }),
    upstream(silent.port, { protocol: "socks5" }),
    upstream(plain.port, { protocol: "https" }),
    upstream(plain.port, { protocol: "socks5" }),
    upstream(secure.port),
    upstream(secure.port, { protocol: "https" }),
    upstream(secure.port, { protocol: "https", caBundle: other }),
    upstream(socks.port),
    upstream(plain.port, { host: "no-such-name.example" }),
  ];
  const found = await Promise.all(cases.map((one) => check(one, urlOf(origin), { limitMs: 700 })));
  expect(found).toEqual(cases.map(() => unavailable));
  expect(origin.requests).toEqual([]);
});

test("a proxy that reaches nobody is unavailable, and so is one whose tunnel ends in something other than the host's TLS", async () => {
  const [origin, proxy] = [await opened(startOrigin()), await opened(startHttpProxy())];
  expect(await check(upstream(proxy.port), `http://origin.example:${await freePort()}/`)).toEqual(
    unavailable,
  );
  expect(await check(upstream(proxy.port), `https://origin.example:${origin.port}/`)).toEqual(unavailable);
  expect(proxy.targets).toHaveLength(2);
});

test("an https URL is asked for inside a tunnel, under the host's own name", async () => {
  const proxy = await opened(startHttpProxy());
  const hello: Buffer[] = [];
  const server = createServer(
    (socket) =>
      void socket.on("error", () => {}).once("data", (piece) => (hello.push(piece), socket.destroy())),
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  open.push({ close: async () => void server.close() });
  expect(
    await check(
      upstream(proxy.port),
      `https://origin.example:${(server.address() as AddressInfo).port}/secret-path`,
    ),
  ).toEqual(unavailable);
  expect(hello[0]?.readUInt8(0)).toBe(0x16);
  expect(hello[0]?.toString("latin1")).toContain("origin.example");
  expect(hello[0]?.toString("latin1")).not.toContain("secret-path");
});

test.each([
  "http://127.0.0.1/",
  "http://localhost:8080/",
  "http://2130706433/",
  "http://[::1]/",
  "http://10.1.2.3/",
  "http://169.254.169.254/latest",
  "http://[fd00:ec2::254]/",
  "http://inside.example/",
  "http://mixed.example/",
  "https://192.168.0.1:22/",
  "http://100.64.0.1/",
  "http://[::ffff:10.0.0.1]/",
])("%s is refused before anything is sent: its host is private", async (url) => {
  const proxy = await opened(startHttpProxy());
  expect(await check(upstream(proxy.port), url)).toEqual({
    kind: "forbidden",
    message: "must name a public host",
  });
  expect(proxy.targets).toEqual([]);
});

test.each([
  ["ftp://origin.example/", "must be an http or https URL"],
  ["origin.example", "must be an http or https URL"],
  ["file:///etc/passwd", "must be an http or https URL"],
  ["http://me:secret@origin.example/", "must not have user information"],
  ["http://origin.example:0/", "must name a host that can be asked"],
])("%s is refused: %s", async (url, message) => {
  expect(await check(upstream(1), url)).toEqual({ kind: "forbidden", message });
});

test("a name that only the proxy can resolve is asked for; without a URL the operator's is, private or not", async () => {
  const [origin, proxy] = [await opened(startOrigin()), await opened(startHttpProxy())];
  expect(await check(upstream(proxy.port), `http://only-there.example:${origin.port}/`)).toEqual(available);
  expect(
    await check(upstream(proxy.port), undefined, { defaultUrl: `http://127.0.0.1:${origin.port}/mine` }),
  ).toEqual(available);
  expect(origin.requests.at(-1)).toBe(`GET 127.0.0.1:${origin.port} /mine`);
});

test.each([
  ["127.0.0.1", []],
  ["proxy.example", ["127.0.0.1"]],
  ["proxy.example", ["93.184.216.34", "127.0.0.1"]],
  ["localhost", []],
] as const)(
  "a check does not tell what listens at a private address that is not open: %s %j",
  async (host, addresses) => {
    const server = await opened(openOrigin((_, reply) => reply.end("private")));
    const resolve = resolveBy({ "origin.example": ["93.184.216.34"], "proxy.example": addresses });
    for (const port of [server.port, await freePort()])
      expect(
        await check(upstream(port, { host }), "http://origin.example/", { proxyHosts: [], resolve }),
      ).toEqual(unavailable);
    expect(server.accepted).toEqual([]);
  },
);

test("a port of Remuda itself is no proxy, and is not connected to", async () => {
  const [origin, proxy] = [await opened(startOrigin()), await opened(startHttpProxy())];
  const reserved = makeReservedEndpoints([{ host: "127.0.0.1", port: proxy.port }]);
  expect(await check(upstream(proxy.port), urlOf(origin), { reserved })).toEqual(unavailable);
  expect(proxy.targets).toEqual([]);
});

test("a check that is given up ends at once", async () => {
  const silent = await opened(startSilent());
  const gone = new AbortController();
  const checking = probeWith({ limitMs: 60_000 })(
    upstream(silent.port),
    "http://origin.example/",
    gone.signal,
  );
  gone.abort();
  expect(await checking).toEqual(unavailable);
});
