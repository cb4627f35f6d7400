import { expect, test } from "vitest";
import type { ExtensionId, OtlpDestinationId, ProfileId, VaultId } from "../../src/base/ids.js";
import { type References, resolveReferences } from "../../src/registry/references.js";

const [one, two] = ["1".repeat(24) as ExtensionId, "2".repeat(24) as ExtensionId];
const login = "3".repeat(24) as ProfileId;
const collector = "5".repeat(24) as OtlpDestinationId;
const logins = "6".repeat(24) as VaultId;
const asked: string[] = [];
const refs: References = {
  proxies: { resolve: async () => ({ kind: "unknown" }) },
  extensions: {
    find: async (id) => ([one, two].includes(id) ? { id } : undefined),
    findNamed: async (name) =>
      new Map([
        ["one", one],
        ["two", two],
      ]).get(name),
  },
  profiles: {
    find: async (id) => {
      asked.push(id);
      return id === login ? { id, createdAt: 0 } : undefined;
    },
    findNamed: async (name) => (name === "login" ? login : undefined),
  },
  vaults: {
    find: async (id) => (id === logins ? { id } : undefined),
    findNamed: async (name) => (name === "logins" ? logins : undefined),
  },
  destinations: {
    find: async (id) => (id === collector ? { id } : undefined),
    findNamed: async (name) => (name === "collector" ? collector : undefined),
  },
};
const resolve = async (body: Parameters<typeof resolveReferences>[1]) => {
  const { body: resolved, faults } = await resolveReferences(refs, body);
  return { resolved, faults: faults.map(({ message }) => message) };
};

test("extensions are resolved in their order, a profile beside them, and what was sent stays as it was", async () => {
  const body = { extensions: [{ name: "two" }, { id: one }], profile: { name: "login" } };
  expect(await resolve(body)).toEqual({
    resolved: { ...body, extension_ids: [two, one], profile_id: login },
    faults: [],
  });
  for (const empty of [{}, { profile: { id: "" } }, { profile: { name: "" } }])
    expect(await resolve(empty)).toEqual({ resolved: empty, faults: [] });
  expect(await resolve({ extensions: [] })).toEqual({
    resolved: { extensions: [], extension_ids: [] },
    faults: [],
  });
});

test("vaults are resolved in their order, each once; one that is not there is at fault", async () => {
  expect(await resolve({ vaults: [{ name: "logins" }, { id: logins }] })).toEqual({
    resolved: { vaults: [{ name: "logins" }, { id: logins }], vault_ids: [logins] },
    faults: [],
  });
  expect((await resolve({ vaults: [{ name: "nobody" }, { id: "x" }] })).faults).toEqual([
    'vaults[0]: there is no vault named "nobody"',
    'vaults[1]: there is no vault with the id "x"',
  ]);
});

test("each reference that means nothing has a fault that names the field and what it asked for", async () => {
  const body = {
    extensions: [{ name: "one" }, { name: "nobody" }, { id: "4".repeat(24) }, { id: "one" }],
    profile: { name: "nobody" },
    proxy_id: "p9",
  };
  expect((await resolve(body)).faults).toEqual([
    "proxy_id: there is no such proxy",
    'extensions[1]: there is no extension named "nobody"',
    `extensions[2]: there is no extension with the id "${"4".repeat(24)}"`,
    'extensions[3]: there is no extension with the id "one"',
    'profile: there is no profile named "nobody"',
  ]);
});

test("an extension that is named twice is at fault, also where the second calls it otherwise", async () => {
  expect(
    (await resolve({ extensions: [{ name: "one" }, { name: "two" }, { id: one }, { name: "two" }] })).faults,
  ).toEqual([
    "extensions[2]: is the same extension as extensions[0]",
    "extensions[3]: is the same extension as extensions[1]",
  ]);
});

test("what has not exactly one of id and name is left to be refused for its form; what is no id is not looked for", async () => {
  const body = { extensions: [{}, { id: one, name: "one" }], profile: {} };
  expect(await resolve(body)).toEqual({ resolved: { ...body, extension_ids: [] }, faults: [] });
  expect(await resolve({ profile: { id: login, name: "login" } })).toMatchObject({ faults: [] });
  asked.length = 0;
  expect((await resolve({ profile: { id: "*:secret" } })).faults).toEqual([
    'profile: there is no profile with the id "*:secret"',
  ]);
  expect(asked).toEqual([]);
});

const exporting = (destination: { id?: string; name?: string }) => ({
  telemetry: { enabled: true, export: { otlp: { enabled: true, destination } } },
});

test("an export's destination is named by its id, whatever it was called; an unknown one is at fault", async () => {
  for (const called of [{ name: "collector" }, { id: collector }])
    expect(await resolve(exporting(called))).toEqual({ resolved: exporting({ id: collector }), faults: [] });
  expect((await resolve(exporting({ name: "nobody" }))).faults).toEqual([
    'telemetry.export.otlp.destination: there is no OTLP destination named "nobody"',
  ]);
  expect((await resolve(exporting({ id: "collector" }))).faults).toEqual([
    'telemetry.export.otlp.destination: there is no OTLP destination with the id "collector"',
  ]);
  for (const formless of [exporting({}), exporting({ id: collector, name: "collector" })])
    expect(await resolve(formless)).toEqual({ resolved: formless, faults: [] });
  for (const none of [{ telemetry: null }, { telemetry: { enabled: true } }])
    expect(await resolve(none)).toEqual({ resolved: none, faults: [] });
});
