import { expect, test } from "vitest";
import type { ProxyCreate } from "../../../src/registry/proxies/proxy.js";
import { type ParsedProxy, parseProxy } from "../../../src/registry/proxies/fields.js";
import { makeCertificate } from "../../support/egress/upstream-proxies.js";

const { cert, key } = makeCertificate();
const other = makeCertificate().cert;
const nothingClosed = (): undefined => undefined;
const place = { host: "proxy.example", port: 3128 };
const custom = (over: Partial<ProxyCreate> = {}, config: ProxyCreate["config"] = {}): ProxyCreate => ({
  type: "custom",
  ...over,
  config: { ...place, ...config },
});

function made(body: ProxyCreate): ParsedProxy {
  const parsed = parseProxy(body, nothingClosed);
  if (parsed.kind === "refused") throw new Error(JSON.stringify(parsed));
  return parsed.value;
}
function faults(body: ProxyCreate): string[] {
  const parsed = parseProxy(body, nothingClosed);
  if (parsed.kind === "done") return [];
  expect(parsed.code).toBe("bad_request");
  return (parsed.details ?? []).map(({ message }) => message);
}

test("the least there is makes an https proxy without secrets", () => {
  expect(made(custom())).toEqual({
    record: { ...place, protocol: "https", hasPassword: false, hasCaBundle: false, bypassHosts: [] },
    secrets: {},
  });
});

test("secrets are apart from what may be shown", () => {
  const { record, secrets, name } = made(
    custom({ name: "out" }, { username: "me", password: "hunter2", ca_bundle: cert }),
  );
  expect(record).toEqual({
    ...place,
    protocol: "https",
    username: "me",
    hasPassword: true,
    hasCaBundle: true,
    bypassHosts: [],
  });
  expect(secrets).toEqual({ password: "hunter2", caBundle: cert });
  expect(name).toBe("out");
});

test.each([
  ["Proxy.EXAMPLE.", "proxy.example"],
  ["10.0.0.7", "10.0.0.7"],
  ["2130706433", "127.0.0.1"],
  ["[2001:DB8::1]", "2001:db8::1"],
  ["2001:db8:0::1", "2001:db8::1"],
  ["bücher.example", "xn--bcher-kva.example"],
  ["localhost", "localhost"],
])("the host %s is kept as %s", (host, kept) => expect(made(custom({}, { host })).record.host).toBe(kept));

test.each([
  "http://proxy.example",
  "proxy.example:3128",
  "proxy.example/",
  "me@proxy.example",
  "*.example",
  "a b",
  "a..b",
  ".",
  "[::1",
  "a\nb",
  "fe80::1%eth0",
  "a".repeat(64),
])("the host %j is none", (host) => {
  expect(faults(custom({}, { host }))).toEqual([
    "config.host: must be a host name or an address, without a scheme, a port or a path",
  ]);
});

test("a place that is closed to proxies is a fault of its host, told with the others", () => {
  const parsed = parseProxy(custom({ bypass_hosts: ["*"] }, { host: "10.0.0.7" }), ({ host, port }) =>
    host === "10.0.0.7" && port === 3128 ? "is closed" : undefined,
  );
  expect(parsed).toMatchObject({
    code: "bad_request",
    details: [{ message: "config.host: is closed" }, { message: expect.stringContaining("bypass_hosts[0]") }],
  });
});

test("bypass hosts are kept in their normal form, each once", () => {
  expect(
    made(
      custom({
        bypass_hosts: [" A.example ", "a.example.", "*.B.example:8080", "10.0.0.1", "[::1]:443", "::1"],
      }),
    ).record.bypassHosts,
  ).toEqual(["a.example", "*.b.example:8080", "10.0.0.1", "[::1]:443", "::1"]);
});

test.each([["*"], ["10.0.0.0/8"], ["http://a.example"], ["a.*.example"], ["a.example:0"], ["a\u0000b"]])(
  "the bypass host %j is none",
  (host) => {
    expect(faults(custom({ bypass_hosts: ["a.example", host] }))).toEqual([
      expect.stringMatching(
        /^bypass_hosts\[1\]: must|^bypass_hosts\[1\]: may|^bypass_hosts\[1\]: is neither/,
      ),
    ]);
  },
);

test("every fault is told at once", () => {
  const body: ProxyCreate = {
    type: "custom",
    name: "a\u0007b",
    protocol: "http",
    bypass_hosts: ["*", "ok.example", "a b"],
    config: { host: "http://x", password: "p\nq", ca_bundle: "no certificate", country: "US" },
  };
  expect(faults(body)).toEqual([
    "name: must not have control characters",
    "config.country: is not a field of custom proxies",
    "config.host: must be a host name or an address, without a scheme, a port or a path",
    "config.port: is required",
    "config.password: requires a username",
    "config.password: must not have control characters",
    "config.ca_bundle: requires protocol https",
    "config.ca_bundle: must have a certificate in PEM",
    "bypass_hosts[0]: must name more than *: leave the list out to mean every host",
    "bypass_hosts[2]: must not have spaces or control characters in it",
  ]);
  expect(faults({ type: "custom" })).toEqual(["config.host: is required", "config.port: is required"]);
});

test.each(["\r\n", "\t", "\u0000", "\u007f", "\u0085"])(
  "a credential must not have the control character %j",
  (odd) => {
    expect(faults(custom({}, { username: `me${odd}`, password: `x${odd}x` }))).toEqual([
      "config.username: must not have control characters",
      "config.password: must not have control characters",
    ]);
  },
);

test("a colon ends a user name of Basic authentication, and is one character among others for SOCKS5 and in passwords", () => {
  const credentials = { username: "a:b", password: "c:d" };
  expect(faults(custom({}, credentials))).toEqual(["config.username: must not have a colon"]);
  expect(faults(custom({ protocol: "http" }, credentials))).toEqual([
    "config.username: must not have a colon",
  ]);
  expect(made(custom({ protocol: "socks5" }, credentials)).secrets).toEqual({ password: "c:d" });
});

test("a credential's bytes are counted, not its characters", () => {
  expect(faults(custom({}, { username: "é".repeat(127), password: "é".repeat(128) }))).toEqual([
    "config.password: must have at most 255 bytes",
  ]);
});

test.each([
  ["one", cert],
  ["two, with words between", `# mine\n${cert}\n\nAnd: another\n${other}\n`],
])("a bundle of %s is taken as it is", (_, bundle) => {
  expect(made(custom({}, { ca_bundle: bundle })).secrets.caBundle).toBe(bundle);
});

test.each([
  ["no PEM", "hello", "must have a certificate in PEM"],
  ["a certificate cut off", cert.slice(0, 100), "must have a certificate in PEM"],
  ["a key", `${cert}\n${key}`, "must have nothing but certificates"],
  [
    "a second that is none",
    `${cert}\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----`,
    "has a certificate that cannot be read, number 2",
  ],
  ["too many bytes", `${"é".repeat(40_000)}${cert}`, "must have at most 65536 bytes"],
])("a bundle with %s is refused, and nothing of it is repeated", (_, bundle, message) => {
  expect(faults(custom({}, { ca_bundle: bundle }))).toEqual([`config.ca_bundle: ${message}`]);
});

test.each(["datacenter", "isp", "residential", "mobile"] as const)(
  "a %s proxy needs a vendor, whatever else the body says",
  (type) => {
    expect(parseProxy({ type, config: { country: "US" } }, nothingClosed)).toMatchObject({
      code: "not_supported",
    });
    expect(
      parseProxy({ type, config: { host: "http://x" }, bypass_hosts: ["*"] }, nothingClosed),
    ).toMatchObject({ code: "not_supported" });
    expect(parseProxy({ type }, nothingClosed)).toMatchObject({ code: "not_supported" });
  },
);
