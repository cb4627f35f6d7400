import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { Resolver } from "node:dns";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openConfig } from "../../src/config/config.js";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "remuda-test-urls-"));
});
afterEach(() => rm(directory, { recursive: true }));

async function faultsOf(file: object, env: Record<string, string> = {}): Promise<readonly string[]> {
  const path = join(directory, "config.json");
  await writeFile(path, JSON.stringify(file));
  const result = openConfig({ packageRoot: directory, env: { REMUDA_CONFIG: path, ...env } });
  return result.kind === "refused" ? result.faults : [];
}

test.each([
  "redis+sentinel://remuda:p@hidden@s1:26379/herd",
  "redis+sentinel://remuda:p/hidden@s1/herd",
  "redis+sentinel://remuda:hidden%@s1/herd",
  "redis+sentinel://remuda:hidden@s1:26379,s2:99999/herd",
  "redis+sentinel://remuda:hidden@s1,,s2/herd",
  "redis://remuda:ab/hidden@h",
  "redis://remuda:ab#hidden@h",
  "redis://remuda:12/hidden@h",
  "redis://remuda:12#hidden@h:6379",
  "redis://remuda:12?hidden@h",
  "rediss://remuda:hidden%zz@h",
  "redis://remuda:hidden@h:99999",
  "//remuda:p@hidden@h",
])("a URL of Redis that cannot be read is refused by its setting's name, and not shown: %s", async (url) => {
  const faults = await faultsOf({}, { REDIS_URL: url });
  expect(faults).toEqual([expect.stringMatching(/^REDIS_URL \(redis\.url\): /)]);
  expect(faults.join()).not.toContain("hidden");
});

test.each([
  "redis://remuda:p%40ss@h:6379/1?family=6",
  "redis://:a:b@h",
  "rediss://[fd00::1]:7",
  "redis+sentinel://remuda:p%40ss:word@s1:26379,s_2,[fd00::1]:7/herd",
  "rediss+sentinel://a/b",
  "/run/redis/a@b%.sock",
])("one that can be read is taken: %s", async (url) => {
  expect(await faultsOf({}, { REDIS_URL: url })).toEqual([]);
});

test("a Redis Cluster is reached by the URL of one of its nodes", async () => {
  const of = (url: string | null) => faultsOf({ redis: { url, cluster: true } });
  const fault = "redis.cluster: needs redis.url (REDIS_URL), of one node of the Cluster";
  expect(await of(null)).toEqual([fault]);
  expect(await of("/run/redis.sock")).toEqual([fault]);
  expect(await of("redis://one.example:7000")).toEqual([]);
});

test("an operator, which has the file of the other roles and none of their secrets, is asked for none", async () => {
  const env = {
    REMUDA_ROLE: "operator",
    REMUDA_API_URL: "http://api.example",
    REMUDA_API_KEY: "k".repeat(32),
  };
  expect(await faultsOf({ redis: { cluster: true } }, env)).toEqual([]);
  expect(await faultsOf({ redis: { tls_ca_file: "ca.pem" } }, env)).toEqual([]);
  const transit = { provider: "transit", transit_address: "https://vault.example" };
  const kms = { provider: "aws_kms", kms_key: "alias/remuda", kms_region: "eu-west-1" };
  for (const keys of [transit, kms]) {
    expect(await faultsOf({ vault: { keys } }, env)).toEqual([]);
    expect(await faultsOf({ vault: { keys } })).toEqual([
      expect.stringMatching(/^vault\.keys\.provider: \w+ needs /),
    ]);
  }
  const archives = { s3_bucket: "b", s3_access_key_id: "id" };
  expect(await faultsOf({ archives }, env)).toEqual([]);
  expect(await faultsOf({ archives })).toEqual([
    "archives.s3_access_key_id, archives.s3_secret_access_key: need each other",
  ]);
});

test.each(["dns.example", "10.0.0.2:99999", "10.0.0.2:0", "10.0.0.0/8", "*.example", "10.0.0.2.", ""])(
  "a DNS server that cannot be asked is refused by its setting's name: %s",
  async (server) => {
    const faults = await faultsOf({ egress: { resolvers: ["10.0.0.1", server] } });
    expect(faults).toEqual([expect.stringMatching(/^egress\.resolvers: /)]);
    expect(faults.join()).toContain(JSON.stringify(server));
  },
);

test("a list without a DNS server is refused, and servers are taken with and without a port", async () => {
  expect(await faultsOf({ egress: { resolvers: [] } })).toEqual([
    expect.stringMatching(/^egress\.resolvers: has to name a server/),
  ]);
  const servers = ["10.0.0.2", "10.0.0.2:5353", "fd00::1", "[fd00::1]", "[fd00::1]:5353"];
  expect(await faultsOf({ egress: { resolvers: servers } })).toEqual([]);
  new Resolver().setServers(servers);
});

test.each(["http://remuda:${PORT}", "http://h:99999", "https://[fd00::zz]", "http://a%zz"])(
  "an address that is no URL is refused by its setting's name: %s",
  async (url) => {
    const file = {
      server: { public_url: url },
      node: { address: url },
      egress: { check_url: url },
      access: { oidc: { jwks_url: url } },
    };
    const [origin, page] = ["http(s)://host[:port] without a path", "http(s)://…"];
    const told = JSON.stringify(url);
    expect((await faultsOf(file)).toSorted()).toEqual([
      `access.oidc.jwks_url: has to be ${page}, or null, and is ${told}`,
      `egress.check_url: has to be ${page}, and is ${told}`,
      `node.address: has to be ${origin}, or null, and is ${told}`,
      `server.public_url: has to be ${origin}, or null, and is ${told}`,
    ]);
  },
);
