import { expect, test } from "vitest";
import { rootPrincipal } from "../../src/access/principal.js";
import { done, refusal } from "../../src/base/errors.js";
import { type ExtensionId, newRequestId, type ProfileId, type ProxyId } from "../../src/base/ids.js";
import type { PoolCreate } from "../../src/spec/bodies.js";
import { declarePools, declaredPoolFaults } from "../../src/pool/declared-pools.js";
import { createPoolSpec } from "../../src/pool/merge-spec.js";
import type { PoolOperations } from "../../src/pool/operations.js";
import { type References, resolveReferences } from "../../src/registry/references.js";
import { silentLog } from "../support/browser/chromium-host.js";
import { pool } from "../support/http/recorded-operations.js";
import { patternsOf } from "../../src/base/net/hosts.js";

const defaults = {
  fillRatePerMinute: 25,
  maxFillRatePerMinute: null,
  engine: "chromium" as const,
  privateHostsCeiling: patternsOf(["0.0.0.0/0", "::/0"]),
};

const extension = "e".repeat(24) as ExtensionId;
const profile = "f".repeat(24) as ProfileId;
/** Registries of one each: a proxy named out, an extension named blocker, a profile named login. */
const principal = rootPrincipal({ id: "root", email: "root@remuda.invalid", name: null });
const refs: References = {
  proxies: {
    resolve: async ({ id, name }) =>
      name === "out" || id === "p1"
        ? { kind: "found", id: "p1" as ProxyId, name: "out" }
        : { kind: "unknown" },
  },
  extensions: {
    find: async (id) => (id === extension ? { id } : undefined),
    findNamed: async (name) => (name === "blocker" ? extension : undefined),
  },
  profiles: {
    find: async (id) => (id === profile ? { id, createdAt: 0 } : undefined),
    findNamed: async (name) => (name === "login" ? profile : undefined),
  },
  destinations: { find: async () => undefined, findNamed: async () => undefined },
  vaults: { find: async () => undefined, findNamed: async () => undefined },
};

async function configOf(body: PoolCreate) {
  const made = createPoolSpec((await resolveReferences(refs, body)).body, defaults);
  if (made.kind === "refused") throw new Error(JSON.stringify(made.details));
  return made.value;
}

/** What is logged where `declared` meets a pool that was made by `present`. */
async function differences(declared: PoolCreate, present: PoolCreate): Promise<unknown> {
  const logged: unknown[] = [];
  const spec = await configOf(present);
  const pools = { get: async () => done({ ...pool, spec }) } as Pick<PoolOperations, "get"> as PoolOperations;
  const log = { ...silentLog, warn: (fields: object) => void logged.push(fields) };
  await declarePools([declared], { pools, ...refs, log, defaults, principal, request: newRequestId });
  return logged;
}

const full: PoolCreate = {
  name: "herd",
  size: 2,
  region: "us-east",
  headless: true,
  viewport: { width: 800, height: 600 },
  chrome_policy: { HomepageLocation: "x" },
  network: { allowed_hosts: [" A.example"] },
  telemetry: { enabled: true },
  start_url: "",
  extensions: [],
};

test("a declared pool that is as declared is nothing to speak of", async () => {
  expect(await differences(full, full)).toEqual([]);
  expect(await differences({ name: "herd", size: 2 }, full)).toEqual([]);
});

test("a proxy that is declared by its name is the one that is kept by its id", async () => {
  const routed = (proxy: object): PoolCreate => ({
    name: "herd",
    size: 2,
    network: { proxy_routes: [{ hosts: ["a.example"], proxy }] },
  });
  expect(await differences(routed({ name: "out" }), routed({ id: "p1" }))).toEqual([]);
  expect(await differences(routed({ name: "gone" }), routed({ id: "p1" }))).toEqual([
    { pool: "herd", fields: ["network"] },
  ]);
});

test("an extension or a profile is the same by its name and by its id; another, or none, is a difference", async () => {
  const one: PoolCreate = {
    name: "herd",
    size: 2,
    extensions: [{ name: "blocker" }],
    profile: { name: "login" },
  };
  const same: PoolCreate = {
    name: "herd",
    size: 2,
    extensions: [{ id: extension }],
    profile: { id: profile, save_changes: true },
  };
  expect(await differences(same, one)).toEqual([]);
  expect(await differences({ ...one, extensions: [] }, one)).toEqual([
    { pool: "herd", fields: ["extensions"] },
  ]);
  expect(await differences({ ...one, profile: { id: "" } }, one)).toEqual([
    { pool: "herd", fields: ["refresh_on_profile_update", "profile"] },
  ]);
  expect(await differences(one, { name: "herd", size: 2 })).toEqual([
    { pool: "herd", fields: ["extensions", "profile", "refresh_on_profile_update"] },
  ]);
});

test("a declared pool that names what is not registered is not created, and says what is missing", async () => {
  const logged: unknown[] = [];
  const pools = { get: async () => refusal("pool_not_found") } as Pick<
    PoolOperations,
    "get"
  > as PoolOperations;
  const log = { ...silentLog, error: (fields: object) => void logged.push(fields) };
  const declared: PoolCreate = {
    name: "herd",
    size: 2,
    extensions: [{ name: "blocker" }, { name: "gone" }],
    profile: { id: "nobody" },
  };
  await declarePools([declared], { pools, ...refs, log, defaults, principal, request: newRequestId });
  expect(logged).toEqual([
    {
      pool: "herd",
      missing: [
        'extensions[1]: there is no extension named "gone"',
        'profile: there is no profile with the id "nobody"',
      ],
    },
  ]);
});

test("the fields that differ are named, their values not", async () => {
  expect(await differences({ ...full, size: 3, viewport: { width: 801, height: 600 } }, full)).toEqual([
    { pool: "herd", fields: ["viewport", "size"] },
  ]);
});

test("one for which there is no room is told in the log, and the daemon goes on", async () => {
  const logged: unknown[] = [];
  const pools = {
    get: async () => refusal("pool_not_found"),
    create: async () => refusal("limit_exceeded"),
  } as Partial<PoolOperations> as PoolOperations;
  const log = { ...silentLog, error: (fields: object) => void logged.push(fields) };
  await declarePools([{ name: "herd", size: 1 }], {
    pools,
    ...refs,
    log,
    defaults,
    principal,
    request: newRequestId,
  });
  expect(logged).toEqual([{ pool: "herd", why: "limit_exceeded" }]);
});

const deciding = {
  defaults: { ...defaults, maxFillRatePerMinute: 100 },
  region: "us-east",
  maxPoolSize: 10,
  maxPools: 2,
  pooledSessions: 15,
  concurrentSessions: null,
};
test.each<[string, readonly unknown[], readonly RegExp[]]>([
  [
    "a body that is none",
    [{ name: "herd" }, { name: "b", size: 1, unknown: 1 }, 7],
    [/^pools\[0\]\.size: is required$/, /^pools\[1\]\.unknown: is not a known field$/, /^pools\[2\]: /],
  ],
  ["no name", [{ size: 1 }], [/^pools\[0\]\.name: has to be given/]],
  [
    "two of one name",
    [
      { name: "a", size: 1 },
      { name: "a", size: 1 },
    ],
    [/^pools: two have the name "a"/],
  ],
  [
    "limits",
    [
      { name: "a", size: 11 },
      { name: "b", size: 5 },
      { name: "c", size: 1 },
    ],
    [/^pools\[0\]\.size: .*max_pool_size/, /^pools: .*17.*pooled_sessions is 15/, /^pools: there are 3/],
  ],
  [
    "another region",
    [{ name: "a", size: 1, region: "eu-west" }],
    [/^pools\[0\]\.region: this deployment is in us-east/],
  ],
  [
    "what the API would refuse",
    [{ name: "a", size: 1, fill_rate_per_minute: 101, start_url: "nowhere" }],
    [/^pools\[0\]\..*start_url|^pools\[0\]\.fill_rate/, /^pools\[0\]\./],
  ],
])("faults of declared pools: %s", (_, declared, faults) => {
  const found = declaredPoolFaults(declared, deciding);
  for (const fault of faults) expect(found).toContainEqual(expect.stringMatching(fault));
  expect(found.length).toBeGreaterThanOrEqual(faults.length);
});

test("an unknown field of a declared pool is told once", () => {
  expect(declaredPoolFaults([{ name: "a", size: 1, unknown: 1 }], deciding)).toEqual([
    "pools[0].unknown: is not a known field",
  ]);
});

test("what is wrong with a declared pool is told as the API tells it", () => {
  const declared = { name: "a b", size: "2", memory: "3GiB", start_url: "x".repeat(3000), telemetry: 7 };
  expect(declaredPoolFaults([{ ...declared, extensions: [{ name: 1 }] }], deciding).toSorted()).toEqual([
    "pools[0].extensions[0].name: must be a string",
    "pools[0].memory: must be one of 1GiB, 2GiB, 4GiB, 8GiB, 16GiB",
    "pools[0].name: must be 1 to 255 letters, digits, dots, underscores or hyphens",
    "pools[0].size: must be a whole number",
    "pools[0].start_url: must have at most 2048 characters",
    "pools[0].telemetry: must be an object or null",
  ]);
  expect(declaredPoolFaults([7], deciding)).toEqual(["pools[0]: must be an object"]);
  const node_selector = { "bad key!": "a", "/~": "a", good: "no value" };
  expect(declaredPoolFaults([{ name: "a", size: 1, node_selector }], deciding).toSorted()).toEqual([
    "pools[0].node_selector.good: does not have the form that is expected",
    "pools[0].node_selector: each name does not have the form that is expected",
  ]);
});

test("a declared pool that refers to what only registries know has no fault of its own", () => {
  expect(
    declaredPoolFaults(
      [
        {
          ...full,
          extensions: [{ name: "blocker" }],
          profile: { name: "login" },
          refresh_on_profile_update: true,
        },
      ],
      deciding,
    ),
  ).toEqual([]);
});
