import { describe, expect, test } from "vitest";
import type { Network, PoolCreate, PoolPatch, SessionCreate } from "../../src/spec/bodies.js";
import {
  createPoolSpec,
  type SpecDefaults,
  mergePoolSpec,
  createSessionTemplate,
} from "../../src/pool/merge-spec.js";
import { patternsOf } from "../../src/base/net/hosts.js";

const defaults: SpecDefaults = {
  fillRatePerMinute: 25,
  maxFillRatePerMinute: null,
  engine: "chromium",
  privateHostsCeiling: patternsOf(["0.0.0.0/0", "::/0", "*.example"]),
};
const created = (body: Partial<PoolCreate>) => createPoolSpec({ size: 2, ...body }, defaults);

function made(body: Partial<PoolCreate>) {
  const spec = created(body);
  if (spec.kind === "refused") throw new Error(JSON.stringify(spec.details));
  return spec.value;
}

/** The fields that are at fault. */
const faultsOf = (
  template: ReturnType<typeof created> | ReturnType<typeof createSessionTemplate>,
): readonly (string | undefined)[] =>
  template.kind === "refused" ? (template.details ?? []).map(({ message }) => message.split(":")[0]) : [];
const faultsOfPool = (body: Partial<PoolCreate>): readonly (string | undefined)[] => faultsOf(created(body));
const faultsOfPatch = (current: Partial<PoolCreate>, patch: PoolPatch): readonly (string | undefined)[] =>
  faultsOf(mergePoolSpec(made(current), patch, defaults));
const faultsOfSession = (body: SessionCreate): readonly (string | undefined)[] =>
  faultsOf(createSessionTemplate(body, defaults));

describe("hosts", () => {
  test("are stored trimmed, in lower case and without duplicates, in the order sent", () => {
    const network = {
      allowed_hosts: [" B.example ", "a.example", "b.EXAMPLE"],
      private_hosts: ["10.0.0.0/8"],
      proxy_routes: [{ hosts: ["C ", "c"], proxy: { id: "p" } }],
    };
    expect(made({ network }).network).toEqual({
      allowed_hosts: ["b.example", "a.example"],
      private_hosts: ["10.0.0.0/8"],
      proxy_routes: [{ hosts: ["c"], proxy: { id: "p" } }],
    });
  });
  test("are stored in normal form, in which two ways to write one host are one", () => {
    const network = {
      allowed_hosts: [
        "BÜCHER.example",
        "xn--bcher-kva.example.",
        "[2001:DB8::0:1]",
        "2001:db8::1",
        "A.example:443",
        "[::1]:80",
      ],
      private_hosts: [" FD00::/8 ", "::ffff:10.0.0.1", "10.0.0.1"],
      proxy_routes: [{ hosts: ["*.B.example.", "*.b.example"], proxy: { id: "p" } }],
    };
    expect(made({ network }).network).toEqual({
      allowed_hosts: ["xn--bcher-kva.example", "2001:db8::1", "a.example:443", "[::1]:80"],
      private_hosts: ["fd00::/8", "10.0.0.1"],
      proxy_routes: [{ hosts: ["*.b.example"], proxy: { id: "p" } }],
    });
  });

  const listings: [string, (host: string) => Network][] = [
    ["network.allowed_hosts", (host) => ({ allowed_hosts: [host] })],
    ["network.private_hosts", (host) => ({ private_hosts: [host] })],
    ["network.proxy_routes.hosts", (host) => ({ proxy_routes: [{ hosts: [host], proxy: { id: "p" } }] })],
  ];
  describe.each(listings)("%s", (field, listing) => {
    test.each([
      "a.example",
      "*.a.example",
      "a.example:443",
      "8.8.8.8",
      "8.8.8.8:53",
      "[2001:4860::8888]",
      "bücher.example",
      "localhost",
    ])("%s may be one", (host) => {
      expect(faultsOfPool({ network: listing(host) })).toEqual([]);
    });
    test.each([
      "  ",
      "https://a.example",
      "a.example/path",
      "a.*.example",
      "*",
      "*a.example",
      "a b",
      "user@a.example",
      "a?b",
      "127.1",
      "a.example:0",
    ])("%j can be none", (host) => {
      expect(faultsOfPool({ network: listing(host) })).toEqual([field]);
    });
    const takesRanges = field === "network.private_hosts";
    test.each(["8.8.4.0/24", "2001:4860::/32", "fc00::/7"])(
      `a range, %s, ${takesRanges ? "may" : "can not"} be one`,
      (host) => {
        expect(faultsOfPool({ network: listing(host) })).toEqual(takesRanges ? [] : [field]);
      },
    );
  });

  test("every entry at fault is told with its fault, and what might be a password is not", () => {
    const refused = createPoolSpec(
      {
        size: 1,
        network: {
          allowed_hosts: ["https://a.example", "b.example", "https://me:hunter2@c.example"],
          private_hosts: ["10.0.0.0/33"],
        },
      },
      defaults,
    );
    expect(refused).toMatchObject({
      details: [
        { message: 'network.allowed_hosts: "https://a.example" must not have a scheme' },
        { message: 'network.allowed_hosts: "…@c.example" must not have a scheme' },
        { message: 'network.private_hosts: "10.0.0.0/33" must have a prefix that its address has bits for' },
      ],
    });
    expect(JSON.stringify(refused)).not.toContain("hunter2");
  });
});

describe("start_url beside allowed_hosts", () => {
  const network = {
    allowed_hosts: ["a.example", "*.wild.example", "ported.example:8443", "192.0.2.1", "[2001:db8::1]:80"],
  };
  test.each<[string, string, boolean]>([
    ["the host", "https://a.example/x?y", true],
    ["in upper case with a trailing dot", "https://A.EXAMPLE./", true],
    ["on any port", "http://a.example:81/", true],
    ["a subdomain of a wildcard", "https://b.wild.example/", true],
    ["the wildcard's own domain", "https://wild.example/", false],
    ["another host", "https://b.example/", false],
    ["a subdomain of an exact host", "https://b.a.example/", false],
    ["a host that ends alike", "https://ba.example/", false],
    ["the host as user information", "https://a.example@b.example/", false],
    ["the entry's port", "https://ported.example:8443/", true],
    ["another port than the entry's", "https://ported.example/", false],
    ["an address", "http://192.0.2.1/", true],
    ["the same address in decimal", "http://3221225985/", true],
    ["another address", "http://192.0.2.2/", false],
    ["IPv6 on its scheme's port", "http://[2001:DB8:0::1]/", true],
    ["IPv6 on another", "https://[2001:db8::1]/", false],
    ["about:blank", "about:blank", true],
    ["a data URL", "data:text/html,b.example", true],
  ])("%s", (_, start_url, isAllowed) => {
    const faults = isAllowed ? [] : ["start_url"];
    expect(faultsOfPool({ network, start_url })).toEqual(faults);
    expect(faultsOfSession({ network, start_url })).toEqual(faults);
    expect(faultsOfPatch({ network }, { start_url })).toEqual(faults);
    expect(faultsOfPatch({ start_url }, { network })).toEqual(faults);
    expect(faultsOfPool({ network: { private_hosts: [] }, start_url })).toEqual([]);
  });
  test("is told with an exact message", () => {
    expect(createPoolSpec({ size: 1, network, start_url: "https://b.example" }, defaults)).toMatchObject({
      kind: "refused",
      code: "bad_request",
      details: [{ message: "start_url: is outside network.allowed_hosts" }],
    });
  });
  test("may be changed together with the list, or once the list is gone", () => {
    const before = { network, start_url: "https://a.example/" };
    expect(
      faultsOfPatch(before, { network: { allowed_hosts: ["b.example"] }, start_url: "https://b.example/" }),
    ).toEqual([]);
    expect(faultsOfPatch(before, { network: { allowed_hosts: ["b.example"] }, start_url: "" })).toEqual([]);
    expect(faultsOfPatch(before, { network: {}, start_url: "https://b.example/" })).toEqual([]);
  });
  test("is not told beside an entry at fault, which may have meant it", () => {
    expect(
      faultsOfPool({ network: { allowed_hosts: ["https://b.example"] }, start_url: "https://b.example/" }),
    ).toEqual(["network.allowed_hosts"]);
  });
});
