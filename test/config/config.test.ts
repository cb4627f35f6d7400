import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openConfig, type Config } from "../../src/config/config.js";
import { findKeys, leaves } from "../../src/config/settings.js";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "remuda-test-config-"));
});
afterEach(() => rm(directory, { recursive: true }));

type Env = Record<string, string>;
const open = async (file: unknown, env: Env = {}) => {
  const path = join(directory, "config.json");
  await writeFile(path, typeof file === "string" ? file : JSON.stringify(file));
  return openConfig({ packageRoot: directory, env: { REMUDA_CONFIG: path, ...env } });
};
const opened = async (file: unknown, env?: Env): Promise<Config> => {
  const result = await open(file, env);
  if (result.kind !== "opened") throw new Error(result.faults.join("\n"));
  return result.config;
};
const faultsOf = async (file: unknown, env?: Env): Promise<readonly string[]> => {
  const result = await open(file, env);
  return result.kind === "refused" ? result.faults : [];
};

describe("values", () => {
  test("an empty file gives every default, durations in ms", async () => {
    const config = await opened({});
    expect(config.server).toMatchObject({ host: "127.0.0.1", port: 4700, publicUrl: null });
    expect(config.acquire).toMatchObject({ maxWaitMs: 50_000, maxWaiters: 1000, idempotencyMs: 600_000 });
    expect(config.tombstones.keepMs).toBe(86_400_000);
    expect(config.fill.defaultRatePerMinute).toBe(25);
    expect(config.periods.fillMs).toBe(1000);
  });
  test("the environment wins over the file, the file over the default", async () => {
    const config = await opened(
      { server: { port: 1, host: "::1" }, region: "us-west" },
      { REMUDA_PORT: "2" },
    );
    expect([config.server.port, config.server.host, config.region]).toEqual([2, "::1", "us-west"]);
  });
  test("an empty variable counts as absent", async () => {
    expect((await opened({}, { REMUDA_PORT: "", REMUDA_API_KEY: "" })).server.port).toBe(4700);
  });
  test("what the machine decides is settled", async () => {
    const { node, drain, dataDir } = await opened({});
    expect(node.memoryBytes).toBeGreaterThan(0);
    expect(node.parallelLaunches).toBeGreaterThan(0);
    expect(drain.limitMs).toBe(0);
    expect(dataDir).toBe(join(directory, ".remuda"));
  });
  test("a node drains for ten minutes unless told otherwise", async () => {
    const shared = {
      REDIS_URL: "redis://r",
      REMUDA_CLUSTER_SECRET: "x".repeat(16),
      REMUDA_ENCRYPTION_KEY: "x".repeat(16),
      REMUDA_ROLE: "node",
    };
    expect((await opened({}, shared)).drain.limitMs).toBe(540_000);
    expect((await opened({ drain: { limit_seconds: 0 } }, shared)).drain.limitMs).toBe(0);
  });
  test("everything is frozen", async () => {
    const config = await opened({
      pools: [{ name: "a", size: 1, headless: true, viewport: { width: 100, height: 100 } }],
    });
    const isFrozen = (value: unknown): boolean =>
      typeof value !== "object" ||
      value === null ||
      (Object.isFrozen(value) && Object.values(value).every(isFrozen));
    expect(isFrozen(config)).toBe(true);
  });
  test("secrets are not printed", async () => {
    const config = await opened(
      {},
      { REMUDA_API_KEY: "very-secret-key-1", REDIS_URL: "redis://u:very-secret@h" },
    );
    expect(config.apiKey?.reveal()).toBe("very-secret-key-1");
    expect(inspect(config, { depth: 9 }) + JSON.stringify(config)).not.toContain("very-secret");
  });
  test("a child inherits no variable of ours", async () => {
    const { childEnvironment } = await opened({}, { REMUDA_API_KEY: "very-secret-key-1", PATH: "/bin" });
    expect(childEnvironment).toEqual({ PATH: "/bin" });
  });
});

describe("faults", () => {
  test("all are listed at once: types, ranges, unknown keys, environment", async () => {
    const faults = await faultsOf(
      {
        server: { port: "4700", prot: 1 },
        fill: 3,
        nonsense: {},
        acquire: { max_waiters: -1 },
        gateway: { ping_seconds: 1.5 },
      },
      { REMUDA_ROLE: "boss" },
    );
    expect(faults).toHaveLength(7);
    expect(faults.toSorted()).toEqual([
      'REMUDA_ROLE (role): has to be one of all, control, node, operator, and is "boss"',
      "acquire.max_waiters: has to be a whole number from 0 to 1,000,000 (callers), and is -1",
      "fill: has to be an object",
      "gateway.ping_seconds: has to be a whole number from 1 to 3,600 (s), and is 1.5",
      "nonsense: there is no such setting",
      'server.port: has to be a whole number from 0 to 65,535 (port), and is "4700"',
      "server.prot: there is no such setting",
    ]);
  });
  test("a variable that is no number is refused with its text", async () => {
    expect(await faultsOf({}, { REMUDA_PORT: "47OO" })).toEqual([
      'REMUDA_PORT (server.port): has to be a whole number from 0 to 65,535 (port), and is "47OO"',
    ]);
  });
  test("a port set by Kubernetes for a Service is explained", async () => {
    expect((await faultsOf({}, { REMUDA_PORT: "tcp://10.0.0.1:4700" })).join()).toContain(
      "enableServiceLinks: false",
    );
  });
  test("a refused secret is not shown", async () => {
    expect((await faultsOf({ api_key: "too short" })).join()).not.toContain("too short");
  });
  test("a syntax error names no text of the file", async () => {
    const result = await open('{"api_key": secret-text }');
    expect(result).toMatchObject({ kind: "refused", file: join(directory, "config.json") });
    expect(JSON.stringify(result)).toContain("JSON");
    expect(JSON.stringify(result)).not.toContain("secret-text");
  });
  test.each(["[]", "null", "3"])("a file that holds %s is refused", async (content) => {
    expect(await faultsOf(content)).toEqual(["the file has to hold one JSON object"]);
  });
  test("a file that is absent is refused", () => {
    const result = openConfig({ packageRoot: directory, env: { REMUDA_CONFIG: "nowhere.json" } });
    expect(result).toMatchObject({ kind: "refused", file: join(directory, "nowhere.json") });
  });
  test("roles that share a deployment demand what they share", async () => {
    expect(await faultsOf({ role: "control" })).toHaveLength(4);
    expect(await faultsOf({ role: "node" })).toHaveLength(3);
  });
  test("an issuer whose tokens anybody could make or use is refused", async () => {
    const oidc = { issuer: "https://people.example", audience: "urn:remuda" };
    const of = (more: object) => faultsOf({ access: { oidc: { ...oidc, ...more } } });
    expect(await of({})).toEqual([]);
    expect(await of({ audience: null })).toHaveLength(1);
    expect((await of({ algorithms: ["RS256", "HS256"] })).join()).toContain("access.oidc.algorithms");
    expect(await of({ algorithms: ["none"] })).toHaveLength(1);
    expect((await of({ issuer: "http://people.example" })).join()).toContain("https");
    expect((await of({ jwks_url: "http://people.example/keys" })).join()).toContain("https");
    expect(await of({ issuer: "http://127.0.0.1:4000" })).toEqual([]);
    expect(await of({ keys_keep_seconds: 599 })).toHaveLength(1);
  });
  test("proxies are addresses and ranges, since a name may come to stand for anybody", async () => {
    const of = (...proxies: string[]) => faultsOf({ server: { trusted_proxies: proxies } });
    expect(await of("10.0.0.0/8", "192.0.2.7", "fd00::/8")).toEqual([]);
    expect(await of("proxy.example", "192.0.2.7:80", "10.0.0.0/33", "")).toHaveLength(1);
    expect(await of("proxy.example", "192.0.2.7:80", "10.0.0.0/33")).toHaveLength(3);
  });
  test("the form of vaults is reached where browsers encrypt: by HTTPS or on loopback", async () => {
    const of = (url: string) => faultsOf({ vault: { form: { public_url: url } } });
    expect(await of("https://form.example")).toEqual([]);
    expect(await of("http://127.0.0.1:4701")).toEqual([]);
    expect(await of("http://form.example")).toEqual([expect.stringContaining("vault.form.public_url")]);
  });
  test("no private host is open, and none may be opened, unless the operator says so", async () => {
    const { egress } = await opened({});
    expect([egress.privateHosts, egress.privateHostsCeiling, egress.proxyHosts]).toEqual([[], [], []]);
    expect(openConfig({ packageRoot: join(import.meta.dirname, "../.."), env: {} })).toMatchObject({
      kind: "opened",
      config: { egress: { privateHosts: [], privateHostsCeiling: [], proxyHosts: [] } },
    });
  });
  test("the ceiling is what the operator opens to all, unless it is given", async () => {
    expect((await opened({ egress: { private_hosts: ["10.0.0.0/8"] } })).egress.privateHostsCeiling).toEqual([
      "10.0.0.0/8",
    ]);
    const both = { private_hosts: ["10.1.0.0/16"], private_hosts_ceiling: ["10.0.0.0/8", "*.corp"] };
    expect((await opened({ egress: both })).egress.privateHostsCeiling).toEqual(["10.0.0.0/8", "*.corp"]);
    expect(
      await faultsOf({
        egress: { private_hosts: ["10.0.0.0/8", "a.corp"], private_hosts_ceiling: ["10.1.0.0/16", "*.corp"] },
      }),
    ).toEqual(['egress.private_hosts: "10.0.0.0/8" is outside egress.private_hosts_ceiling']);
    for (const setting of ["private_hosts_ceiling", "proxy_hosts"])
      expect(await faultsOf({ egress: { [setting]: ["http://a"] } })).toEqual([
        `egress.${setting}: "http://a" must not have a scheme`,
      ]);
  });
  test("the command line opens loopback for a trial, under whatever ceiling the file has", async () => {
    const path = join(directory, "config.json");
    const file = { egress: { private_hosts: ["10.0.0.1"], private_hosts_ceiling: ["10.0.0.0/8"] } };
    await writeFile(path, JSON.stringify(file));
    const given = openConfig({ packageRoot: directory, env: { REMUDA_CONFIG: path }, openLoopback: 3000 });
    const hosts = ["127.0.0.1:3000", "[::1]:3000", "localhost:3000"];
    expect(given).toMatchObject({
      config: {
        egress: { privateHosts: ["10.0.0.1", ...hosts], privateHostsCeiling: ["10.0.0.0/8", ...hosts] },
      },
    });
    const all = openConfig({ packageRoot: directory, env: { REMUDA_CONFIG: path }, openLoopback: "all" });
    expect(all).toMatchObject({
      config: { egress: { privateHosts: ["10.0.0.1", "127.0.0.0/8", "[::1]", "localhost"] } },
    });
  });
  test("private hosts that are none are refused, each with its fault", async () => {
    expect(
      await faultsOf({
        egress: { private_hosts: ["10.0.0.0/8", "[::1]", "localhost:3000", "http://a", "10.0.0.0/99"] },
      }),
    ).toEqual([
      expect.stringContaining('egress.private_hosts: "http://a" must not have a scheme'),
      expect.stringContaining('egress.private_hosts: "10.0.0.0/99"'),
    ]);
  });
  test("settings that contradict each other are refused", async () => {
    expect(await faultsOf({ fill: { max_rate_per_minute: 10 }, node: { lost_after_ms: 1000 } })).toHaveLength(
      2,
    );
    expect(
      await faultsOf({ gateway: { max_message_bytes: 100 * 2 ** 20, max_total_unfinished_bytes: 2 ** 25 } }),
    ).toEqual([
      "gateway.max_message_bytes: has to be at most gateway.max_unfinished_bytes",
      "gateway.max_unfinished_bytes: has to be at most gateway.max_total_unfinished_bytes",
    ]);
    expect(await faultsOf({ redis: { url: "redis+sentinel://a,b/herd", cluster: true } })).toEqual([
      "redis.cluster: has to be false where redis.url names sentinels",
    ]);
    expect(await faultsOf({ redis: { url: "redis://a", tls_ca_file: "ca.pem" } })).toEqual([
      "redis.tls_ca_file, redis.tls_certificate_file: redis.url has to be rediss",
    ]);
    const lacking = { url: "rediss+sentinel://a,b/herd", tls_ca_file: "ca.pem", tls_key_file: "key.pem" };
    expect(await faultsOf({ redis: lacking })).toEqual([
      "redis.tls_certificate_file, redis.tls_key_file: need each other",
    ]);
  });
  test("names of prototypes are unknown settings", async () => {
    expect(await faultsOf('{"__proto__": 1, "constructor": {}}')).toHaveLength(2);
  });
});

describe("schema", () => {
  test("each unit is the one its key ends in", () => {
    const suffixes: Record<string, string> = {
      _seconds: "s",
      _minutes: "min",
      _hours: "h",
      _ms: "ms",
      _bytes: "bytes",
    };
    for (const { path, setting } of leaves) {
      const suffix = Object.keys(suffixes).find((end) => path.at(-1)?.endsWith(end));
      const isDuration = ["s", "min", "h", "ms", "bytes"].includes(setting.unit ?? "");
      expect([path.join("."), isDuration ? setting.unit : undefined]).toEqual([
        path.join("."),
        suffix && suffixes[suffix],
      ]);
    }
  });
  test("every setting has a description, and a default its own check accepts", async () => {
    for (const { path, setting } of leaves)
      expect([path, setting.description.length > 0]).toEqual([path, true]);
    expect(await faultsOf({})).toEqual([]);
  });
  test("the environment's names are unlike each other", () => {
    const names = leaves.flatMap(({ setting }) => setting.env ?? []);
    expect(new Set(names).size).toBe(names.length);
    expect(names.toSorted()).toEqual([
      "REDIS_SENTINEL_PASSWORD",
      "REDIS_URL",
      "REMUDA_API_KEY",
      "REMUDA_API_URL",
      "REMUDA_CHROMIUM",
      "REMUDA_CLUSTER_SECRET",
      "REMUDA_DATA_DIR",
      "REMUDA_ENCRYPTION_KEY",
      "REMUDA_HOST",
      "REMUDA_KMS_ACCESS_KEY_ID",
      "REMUDA_KMS_SECRET_ACCESS_KEY",
      "REMUDA_NAMESPACE",
      "REMUDA_NODE_ID",
      "REMUDA_NODE_MEMORY_BYTES",
      "REMUDA_NODE_ZONE",
      "REMUDA_PORT",
      "REMUDA_PREVIOUS_ENCRYPTION_KEY",
      "REMUDA_PUBLIC_URL",
      "REMUDA_REGION",
      "REMUDA_ROLE",
      "REMUDA_S3_ACCESS_KEY_ID",
      "REMUDA_S3_SECRET_ACCESS_KEY",
      "REMUDA_TRANSIT_TOKEN",
    ]);
  });
  test("the configuration that comes with the checkout is valid", () => {
    expect(openConfig({ packageRoot: join(import.meta.dirname, "../.."), env: {} }).kind).toBe("opened");
    expect(findKeys([])).toContain("pools");
  });
});
