import { expect, test } from "vitest";
import { operationRules } from "../../src/access/operation-rules.js";
import type { Guarded } from "../../src/access/principal.js";
import { errors } from "../../src/base/errors.js";
import { defaultProject, type ProjectId } from "../../src/base/ids.js";
import {
  authenticator,
  blue,
  ids,
  keyOf,
  keyWith,
  knownKey,
  thingsWith,
  unknownKey,
} from "../support/access/principals.js";
import { askFor, type Listed, listOperations } from "../support/access/listed-operations.js";
import { type Got, key as rootKey, send, sharedServer } from "../support/http/http-server.js";
import { anything, everyAction, type Kind, needs, ofOrganization } from "../support/access/needed-actions.js";
import { readDocument } from "../support/http/openapi-document.js";

const held = { current: undefined as { id: string; save: boolean } | undefined };
const things = {
  find: (...asked: Parameters<ReturnType<typeof thingsWith>["find"]>) =>
    thingsWith(held.current).find(...asked),
  choose: thingsWith(undefined).choose,
};
const server = sharedServer({}, { authenticator, thingsIn: () => things });

const whole = "projects/default/*";
const everythingIn = (project: string) =>
  anything.map((action) => [action, `projects/${project}/*`] as const);
const on = (actions: readonly string[], resource: string): string =>
  keyWith(...actions.map((action) => [action, resource] as const));

const listed = () => listOperations(server().url);
/** A key, and the project that the request names. */
type Asker = string | { readonly bearer: string; readonly project: string };
const ask = (operation: Listed, asker: Asker): Promise<Got> =>
  askFor(server().url, operation, typeof asker === "string" ? { bearer: asker } : asker);
const naming = (projects: readonly string[], ...bearers: readonly string[]): readonly Asker[] =>
  projects.flatMap((project) => bearers.map((bearer) => ({ bearer, project })));

const missing = {
  browsers: "browser_not_found",
  profiles: "profile_not_found",
  proxies: "proxy_not_found",
  vaults: "vault_not_found",
} as const;
const calls = () => server().operations.calls;
async function expectRefused(
  operation: Listed,
  asker: Asker,
  code: "unauthorized" | "insufficient_scope" | "project_not_found" | (typeof missing)[Kind],
): Promise<void> {
  const { status } = errors[code];
  calls().length = 0;
  const got = await ask(operation, asker);
  const where = `${operation.operationId} ${JSON.stringify(got.body)}`;
  expect(got.status, where).toBe(status);
  expect(got.body.code, where).toBe(code);
  if (status === 403) expect(got.headers.get("www-authenticate")).toBe('Bearer error="insufficient_scope"');
  expect(calls(), where).toEqual([]);
}
async function expectAdmitted(operation: Listed, asker: Asker): Promise<void> {
  const got = await ask(operation, asker);
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
  expect(documented).toEqual(expect.arrayContaining([...Object.keys(needs), ...ofOrganization]));
});

test("nobody without a credential that is good gets to any operation", async () => {
  const bad = { none: "", garbage: "nonsense", unknown: unknownKey(), expired: knownKey({}, "expired") };
  const typo = `${knownKey().slice(0, -1)}!`;
  for (const operation of await listed())
    for (const bearer of [...Object.values(bad), typo])
      await expectRefused(operation, bearer, "unauthorized");
});

test("the root key and a key of the organization get to every operation, in every project", async () => {
  const keys = [rootKey, knownKey()];
  for (const operation of await listed())
    for (const asker of [...keys, ...naming(["default", blue], ...keys)])
      await expectAdmitted(operation, asker);
});

test("a key of one project gets to all of them but those of the organization", async () => {
  const keys = [defaultProject, blue].map((projectId) => knownKey({ projectId }));
  // What other operations refuse themselves is in `scope-matrix.test.ts`.
  const isOfLog = (id: string): boolean => /AuditLogs$|ExportDestinations?$/.test(id);
  for (const operation of (await listed()).filter(
    ({ operationId: id }) => isOfLog(id) || !ofOrganization.has(id),
  ))
    for (const bearer of keys)
      await (isOfLog(operation.operationId)
        ? expectRefused(operation, bearer, "insufficient_scope")
        : expectAdmitted(operation, bearer));
});

test("a key of a project that is not active gets to none, nor does whoever names one", async () => {
  const elsewhere = knownKey({ projectId: "other" as ProjectId });
  const generous = on(anything, "organizations/default/*");
  const others = ["other", "nonsense", "Default", ""];
  for (const operation of await listed())
    for (const asker of [elsewhere, ...naming(others, rootKey, knownKey(), generous)])
      await expectRefused(operation, asker, "project_not_found");
});

test("a key of one project gets to none by naming another", async () => {
  const keysOf = (projectId: ProjectId) => [
    knownKey({ projectId }),
    keyOf({ projectId }, everythingIn(projectId)),
  ];
  const askers = [
    ...naming([defaultProject, "other", "nonsense"], ...keysOf(blue)),
    ...naming([blue, "other", "nonsense"], ...keysOf(defaultProject)),
  ];
  for (const operation of await listed())
    for (const asker of askers) await expectRefused(operation, asker, "insufficient_scope");
});

test("a policy opens nothing that no policy speaks of, whatever it says", async () => {
  const generous = [
    on(anything, "organizations/default/*"),
    ...[defaultProject, blue].map((projectId) => keyOf({ projectId }, everythingIn(projectId))),
  ];
  const closed = (await listed()).filter(({ operationId }) => needs[operationId] === undefined);
  for (const operation of closed)
    for (const bearer of generous) await expectRefused(operation, bearer, "insufficient_scope");
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

/** A key that may do what an operation needs, on that. */
const keyFor = (actions: readonly string[], resource: string, projectId?: ProjectId): string =>
  keyOf(
    projectId ? { projectId } : {},
    actions.map((action) => [action, resource] as const),
  );

test("so does one of a key of one project, in its own; one on another project opens nothing", async () => {
  for (const operation of await listed()) {
    const row = needs[operation.operationId];
    if (row === undefined || row === "nothing") continue;
    const [of, kind, ...actions] = row;
    const [place, thing] = [`projects/${blue}/*`, `projects/${blue}/${kind}/${ids[kind]}`];
    await expectAdmitted(operation, keyFor(actions, place, blue));
    await expectAdmitted(operation, { bearer: keyFor(actions, place), project: blue });
    if (of === "thing") await expectAdmitted(operation, keyFor(actions, thing, blue));
    if (of === "list") continue;
    const code = of === "thing" ? missing[kind] : "insufficient_scope";
    await expectRefused(operation, { bearer: keyFor(actions, place), project: "default" }, code);
    await expectRefused(operation, keyFor(actions, place, defaultProject), code);
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
    expect(onAll?.({ id: "one", vaults: ["v"] })).toBe(false);
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
  ["a vault", { vaults: [{ name: "mine" }] }, ["vaults:use"]],
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
  const kind = (actions[0]?.split(":")[0] ?? "proxies") as "profiles" | "proxies" | "vaults";
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
  ["a vault that nobody knows", { vaults: [{ name: "nobody's" }] }],
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
