import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openConfig } from "../../src/config/config.js";
import { urlOf } from "../../src/config/resolve.js";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "remuda-test-resolve-"));
});
afterEach(() => rm(directory, { recursive: true }));

async function faultsOf(file: object): Promise<readonly string[]> {
  const path = join(directory, "config.json");
  await writeFile(path, JSON.stringify(file));
  const result = openConfig({ packageRoot: directory, env: { REMUDA_CONFIG: path } });
  return result.kind === "refused" ? result.faults : [];
}

test("directories of browsers lie apart from those of data and archives", async () => {
  const of = (scratch: string, file: object = {}) =>
    faultsOf({ data_dir: "/srv/a/data", node: { scratch_dir: scratch }, ...file });
  for (const path of ["/srv/a/data", "/srv/a/data/browsers", "/srv/a/", "/", "/srv/b/../a/data"])
    expect(await of(path)).toEqual([
      `node.scratch_dir: ${resolve(path)} and data_dir (/srv/a/data) have to be two directories, neither in the other`,
    ]);
  expect(await of("/srv/kept", { archives: { directory: "/srv/kept/archives" } })).toEqual([
    expect.stringContaining("archives.directory (/srv/kept/archives)"),
  ]);
  for (const path of ["/srv/a/data-of-browsers", "/srv/b", "/dev/shm/browsers"])
    expect(await of(path)).toEqual([]);
  // A control has the file of the nodes, and no browsers.
  const control = { role: "control", api_key: "k".repeat(32), encryption_key: "e".repeat(32) };
  const shared = { cluster_secret: "s".repeat(32), redis: { url: "redis://r" } };
  expect(await of("/srv/a/data", { ...control, ...shared })).toEqual([]);
});

describe("the URL of a daemon that listens on every address", () => {
  type Interfaces = NonNullable<Parameters<typeof urlOf>[2]>;
  const withMask = { netmask: "", mac: "", cidr: null };
  const ipv4 = (address: string, internal = false) =>
    ({ address, family: "IPv4", internal, ...withMask }) as const;
  const ipv6 = (address: string, internal = false) =>
    ({ address, family: "IPv6", internal, scopeid: 0, ...withMask }) as const;
  const loopback = [ipv4("127.0.0.1", true), ipv6("::1", true)];
  const both: Interfaces = { lo: loopback, eth0: [ipv6("fe80::1"), ipv4("192.0.2.7"), ipv6("2001:db8::7")] };
  const onlyIpv6: Interfaces = {
    lo: loopback,
    eth0: [ipv6("fe80::1"), ipv6("febf::1"), ipv6("2001:db8::7")],
  };

  test.each([
    ["0.0.0.0", both, "http://192.0.2.7:4700"],
    ["::", both, "http://192.0.2.7:4700"],
    ["::", onlyIpv6, "http://[2001:db8::7]:4700"],
    // Nobody listens on the IPv6 address there.
    ["0.0.0.0", onlyIpv6, "http://127.0.0.1:4700"],
    ["::", { lo: loopback }, "http://127.0.0.1:4700"],
    ["::1", both, "http://[::1]:4700"],
    ["remuda.example", both, "http://remuda.example:4700"],
  ])("%s", (host, interfaces, url) => {
    expect(urlOf(host, 4700, interfaces)).toBe(url);
  });
});
