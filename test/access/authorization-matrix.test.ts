import { expect, test } from "vitest";
import { operationRules } from "../../src/access/operation-rules.js";
import type { Guarded } from "../../src/access/principal.js";
import { errors } from "../../src/base/errors.js";
import type { ProjectId } from "../../src/base/ids.js";
import {
  authenticator,
  ids,
  keyWith,
  knownKey,
  thingsWith,
  unknownKey,
} from "../support/access/principals.js";
import { askFor, type Listed, listOperations } from "../support/access/listed-operations.js";
import { type Got, key as rootKey, send, sharedServer } from "../support/http/http-server.js";
import { readDocument } from "../support/http/openapi-document.js";

const held = { current: undefined as { id: string; save: boolean } | undefined };
const things = {
  find: (...asked: Parameters<ReturnType<typeof thingsWith>["find"]>) =>
    thingsWith(held.current).find(...asked),
  choose: thingsWith(undefined).choose,
};
const server = sharedServer({}, { authenticator, thingsIn: () => things });

type Kind = "browsers" | "profiles" | "proxies";
/**
 * What each operation needs, as docs/access.md tells it: written once more, so that a slip in the table
 * shows.
 */
const needs: Readonly<
  Record<string, readonly [of: "project" | "list" | "thing", Kind, ...string[]] | "nothing">
> = {
  getAuthContext: "nothing",
  // They show no project but those that `projects:read` allows.
  listProjects: "nothing",
  getProject: "nothing",
  getProjectLimits: "nothing",
  listBrowsers: ["list", "browsers", "browsers:use"],
  createBrowser: ["project", "browsers", "browsers:create", "browsers:use"],
  getBrowser: ["thing", "browsers", "browsers:use"],
  updateBrowser: ["thing", "browsers", "browsers:write", "browsers:use"],
  curlBrowser: ["thing", "browsers", "browsers:use"],
  getFlightRecording: ["thing", "browsers", "browsers:use"],
  streamBrowserTelemetry: ["thing", "browsers", "browsers:use"],
  listBrowserTelemetryEvents: ["thing", "browsers", "browsers:use"],
  reportCaptchaSolveResult: ["thing", "browsers", "browsers:use"],
  deleteBrowser: ["thing", "browsers", "browsers:delete"],
  listProfiles: ["list", "profiles", "profiles:read"],
  createProfile: ["project", "profiles", "profiles:create"],
  getProfile: ["thing", "profiles", "profiles:read"],
  updateProfile: ["thing", "profiles", "profiles:write"],
  deleteProfile: ["thing", "profiles", "profiles:delete"],
  downloadProfile: ["thing", "profiles", "profiles:read", "profiles:use"],
  listProxies: ["list", "proxies", "proxies:read"],
  createProxy: ["project", "proxies", "proxies:create"],
  getProxy: ["thing", "proxies", "proxies:read"],
  updateProxy: ["thing", "proxies", "proxies:write"],
  deleteProxy: ["thing", "proxies", "proxies:delete"],
  checkProxy: ["thing", "proxies", "proxies:use", "proxies:read"],
  getOrganizationLimits: ["project", "browsers", "organizations:read"],
  getEntitlements: ["project", "browsers", "organizations:read"],
};
const everyAction = ["browsers", "profiles", "vaults", "proxies"].flatMap((kind) =>
  ["create", "read", "use", "write", "delete"].map((verb) => `${kind}:${verb}`),
);
const anything = [...everyAction, "projects:read", "organizations:read"];
const whole = "projects/default/*";
const on = (actions: readonly string[], resource: string): string =>
  keyWith(...actions.map((action) => [action, resource] as const));

/** A key of one project may not, whichever its project is. */
const isOfOrganization = ({ operationId }: Listed): boolean =>
  operationId.endsWith("ExportDestination") || operationId === "listExportDestinations";

const listed = () => listOperations(server().url);
const ask = (operation: Listed, bearer: string): Promise<Got> => askFor(server().url, operation, bearer);

const missing = {
  browsers: "browser_not_found",
  profiles: "profile_not_found",
  proxies: "proxy_not_found",
} as const;
const calls = () => server().operations.calls;
async function expectRefused(
  operation: Listed,
  bearer: string,
  code: "unauthorized" | "insufficient_scope" | "project_not_found" | (typeof missing)[Kind],
): Promise<void> {
  const { status } = errors[code];
  calls().length = 0;
  const got = await ask(operation, bearer);
  const where = `${operation.operationId} ${JSON.stringify(got.body)}`;
  expect(got.status, where).toBe(status);
  expect(got.body.code, where).toBe(code);
  if (status === 403) expect(got.headers.get("www-authenticate")).toBe('Bearer error="insufficient_scope"');
  expect(calls(), where).toEqual([]);
}
async function expectAdmitted(operation: Listed, bearer: string): Promise<void> {
  const got = await ask(operation, bearer);
  expect([401, 403, 404], `${operation.operationId} ${got.text}`).not.toContain(got.status);
}

test("every operation of the document has a row, and there is no other row", async () => {
  const { paths } = await readDocument<{ paths: Record<string, Record<string, { operationId: string }>> }>(
    server().url,
  );
  const documented = Object.values(paths)
    .flatMap((methods) => Object.values(methods))
    .map(({ operationId }) => operationId);
  expect(Object.keys(operationRules).toSorted()).toEqual(documented.toSorted());
});

test("nobody without a credential that is good gets to any operation", async () => {
  const bad = { none: "", garbage: "nonsense", unknown: unknownKey(), expired: knownKey({}, "expired") };
  const typo = `${knownKey().slice(0, -1)}!`;
  for (const operation of await listed())
    for (const bearer of [...Object.values(bad), typo])
      await expectRefused(operation, bearer, "unauthorized");
});

test("the root key, a key of the organization and one of the project get to every operation", async () => {
  const ofProject = knownKey({ projectId: "default" as ProjectId });
  for (const operation of (await listed()).filter(({ takesParts }) => !takesParts)) {
    await Promise.all([rootKey, knownKey()].map((bearer) => expectAdmitted(operation, bearer)));
    if (isOfOrganization(operation)) await expectRefused(operation, ofProject, "insufficient_scope");
    else await expectAdmitted(operation, ofProject);
  }
});

test("a key of another project gets to none", async () => {
  const elsewhere = knownKey({ projectId: "other" as ProjectId });
  for (const operation of await listed()) await expectRefused(operation, elsewhere, "project_not_found");
});

test("a policy opens nothing that no policy speaks of, whatever it says", async () => {
  const generous = on(anything, "organizations/default/*");
  for (const operation of await listed())
    if (needs[operation.operationId] === undefined)
      await expectRefused(operation, generous, "insufficient_scope");
});

test("a policy with all that an operation needs lets it through, on the organization, the project or the thing", async () => {
  for (const operation of await listed()) {
    const row = needs[operation.operationId];
    if (row === undefined || row === "nothing") continue;
    const [of, kind, ...actions] = row;
    await expectAdmitted(operation, on(actions, whole));
    await expectAdmitted(operation, on(actions, "organizations/default/*"));
    if (of === "thing") await expectAdmitted(operation, on(actions, `projects/default/${kind}/${ids[kind]}`));
  }
});

test("one action less is 403; a thing of which no statement speaks is as unknown as one that is not there", async () => {
  for (const operation of await listed()) {
    const row = needs[operation.operationId];
    if (row === undefined || row === "nothing" || row[0] === "list") continue;
    const [of, kind, ...actions] = row;
    const others = everyAction.filter((action) => action.startsWith(`${kind}:`));
    for (const lacking of actions) {
      const rest = others.filter((action) => action !== lacking);
      await expectRefused(operation, on(rest, whole), "insufficient_scope");
    }
    const onOther = on(others, `projects/default/${kind}/another`);
    const ofOtherKinds = on(
      everyAction.filter((action) => !others.includes(action)),
      whole,
    );
    const inOther = on(others, "projects/other/*");
    for (const bearer of [onOther, ofOtherKinds, inOther])
      await (of === "thing"
        ? expectRefused(operation, bearer, missing[kind])
        : expectRefused(operation, bearer, "insufficient_scope"));
  }
});

test("a list is asked for what the key may see, and for nothing else", async () => {
  for (const operation of await listed()) {
    const row = needs[operation.operationId];
    if (row === undefined || row === "nothing" || row[0] !== "list") continue;
    const [, kind, ...actions] = row;
    const sees = async (bearer: string): Promise<((thing: Guarded) => boolean) | undefined> => {
      calls().length = 0;
      expect(await ask(operation, bearer)).toMatchObject({ status: 200 });
      const [query] = calls()[0]?.args ?? [];
      return (query as { sees?: (thing: Guarded) => boolean }).sees;
    };
    expect(await sees(rootKey)).toBeUndefined();
    const onOne = await sees(on(actions, `projects/default/${kind}/one`));
    expect([onOne?.({ id: "one" }), onOne?.({ id: "two" })]).toEqual([true, false]);
    const onNone = await sees(
      on(
        everyAction.filter((action) => !actions.includes(action)),
        whole,
      ),
    );
    expect(onNone?.({ id: "one" })).toBe(false);
    const onAll = await sees(on(actions, whole));
    expect(onAll?.({ id: "one" })).toBe(true);
    expect(onAll?.({ id: "one", profile: { id: "p", save: false } })).toBe(false);
  }
});

test("whatever is done to a browser needs the use of the profile that it holds, and its change where it is saved", async () => {
  const operations = (await listed()).filter(({ operationId }) => {
    const row = needs[operationId];
    return row !== undefined && row[0] === "thing" && row[1] === "browsers";
  });
  expect(operations.length).toBe(8);
  for (const operation of operations) {
    const actions = (needs[operation.operationId] ?? []).slice(2) as string[];
    held.current = { id: "p1", save: false };
    await expectRefused(operation, on(actions, whole), "insufficient_scope");
    await expectAdmitted(operation, on([...actions, "profiles:use"], whole));
    held.current = { id: "p1", save: true };
    await expectRefused(operation, on([...actions, "profiles:use"], whole), "insufficient_scope");
    await expectAdmitted(operation, on([...actions, "profiles:use", "profiles:write"], whole));
    held.current = undefined;
  }
});

const browsing = ["browsers:create", "browsers:use", "browsers:write"].map(
  (action) => [action, whole] as const,
);
const named = { profile: { name: "mine" } };
test.each([
  ["a profile", named, ["profiles:use"]],
  [
    "a profile that is saved",
    { profile: { name: "mine", save_changes: true } },
    ["profiles:use", "profiles:write"],
  ],
  ["a proxy", { proxy: { name: "mine" } }, ["proxies:use"]],
  ["a proxy by its id", { proxy_id: ids.proxies }, ["proxies:use"]],
  [
    "a route",
    { network: { proxy_routes: [{ hosts: ["a.example"], proxy: { name: "mine" } }] } },
    ["proxies:use"],
  ],
])("a browser with %s needs what its body names", async (_, body, actions) => {
  const post = (bearer: string, sent: object = body): Promise<Got> =>
    send(`${server().url}/browsers`, {
      method: "POST",
      body: sent,
      headers: { authorization: `Bearer ${bearer}` },
    });
  const kind = actions[0]?.startsWith("profiles") === true ? "profiles" : "proxies";
  const granted = actions.map((action) => [action, `projects/default/${kind}/${ids[kind]}`] as const);
  for (const lacking of actions)
    expect(
      await post(keyWith(...browsing, ...granted.filter(([action]) => action !== lacking))),
    ).toMatchObject({ status: 403, body: { code: "insufficient_scope" } });
  expect(calls()).toEqual([]);
  expect(await post(keyWith(...browsing, ...granted))).toMatchObject({ status: 200 });
  // The operation is given the id that was judged, whatever the name comes to stand for.
  expect(JSON.stringify(calls()[0]?.args[0])).toContain(ids[kind]);
  expect(JSON.stringify(calls()[0]?.args[0])).not.toContain("mine");
});

test.each([
  ["stored extensions", { extensions: [{ name: "mine" }] }],
  ["vaults", { vaults: [{ name: "mine" }] }],
  ["an export of telemetry", { telemetry: { export: { otlp: { enabled: true } } } }],
  ["a profile that nobody knows", { profile: { name: "nobody's" } }],
])("no key with a policy on single things launches a browser with %s", async (_, body) => {
  const bearer = keyWith(...browsing, ["profiles:use", `projects/default/profiles/${ids.profiles}`]);
  expect(
    await send(`${server().url}/browsers`, {
      method: "POST",
      body,
      headers: { authorization: `Bearer ${bearer}` },
    }),
  ).toMatchObject({ status: 403, body: { code: "insufficient_scope" } });
  expect(calls()).toEqual([]);
});
