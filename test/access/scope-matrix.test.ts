import { beforeAll, expect, test } from "vitest";
import { actions } from "../../src/access/policy.js";
import { errors } from "../../src/base/errors.js";
import {
  type Answer,
  type Asker,
  type Operation,
  sharedFilledProjects,
} from "../support/access/filled-projects.js";
import { everyAction, type Kind, needs, ofOrganization } from "../support/access/needed-actions.js";
import { askedOf, makeSubject, scopeRows, type Subject } from "../support/access/scope-rows.js";

const bed = sharedFilledProjects();

/**
 * `/healthz` and `/readyz` need no credential; `/metrics` is of another listener's making
 * (`admission.test.ts`).
 */
const open = ["getHealth", "getReadiness", "getMetrics"];
/** Where older clients find it, too. */
const pathsOf = ({ path }: Operation): readonly string[] =>
  path.startsWith("/org/projects") ? [path, path.slice("/org".length)] : [path];
let operations: readonly Operation[];
/** The project whose keys are tried. */
let blue: string;
/** What each path names where it is only to be refused. */
let standing: Readonly<Record<Subject, string>>;

beforeAll(async () => {
  operations = (await bed.operations())
    .filter(({ id }) => !open.includes(id))
    .flatMap((operation) => pathsOf(operation).map((path) => ({ ...operation, path })));
  const [, own] = bed.projects;
  if (!own) throw new Error("there are three projects");
  blue = own.project;
  const [key, exported] = await Promise.all([
    makeSubject(bed, "key", blue),
    makeSubject(bed, "export", blue),
  ]);
  standing = { ...own, key, project: blue, export: exported };
});

type Pair = { readonly action: string; readonly resource: string };
const all = (given: readonly string[], resource: string): readonly Pair[] =>
  given.map((action) => ({ action, resource }));
const ofProject = actions.filter((action) => !action.startsWith("organizations:"));
const reading = (action: string): boolean => action.endsWith(":read");
const whole = "organizations/default/*";

/** What a key has: everything in its reach, or what its policy says. */
interface Shape {
  readonly isOfProject: boolean;
  readonly policy?: () => readonly Pair[];
}
const inBlue = (): string => `projects/${blue}/*`;
const shapes: Readonly<Record<string, Shape>> = {
  "a key of the organization": { isOfProject: false },
  "a key of the project": { isOfProject: true },
  "a key of the organization that may do all that policies allow": {
    isOfProject: false,
    policy: () => all(actions, whole),
  },
  "a key of the organization that may do all of it in the project": {
    isOfProject: false,
    policy: () => all(ofProject, inBlue()),
  },
  "a key of the project that may do all of it": { isOfProject: true, policy: () => all(ofProject, inBlue()) },
  "a reader of the organization": { isOfProject: false, policy: () => all(actions.filter(reading), whole) },
  "a reader of the project": { isOfProject: true, policy: () => all(ofProject.filter(reading), inBlue()) },
};

const missing: Readonly<Record<Kind, keyof typeof errors>> = {
  browsers: "browser_not_found",
  profiles: "profile_not_found",
  proxies: "proxy_not_found",
  vaults: "vault_not_found",
};

/** Why docs/access.md has the operation refused to such a key; undefined where it lets it in. */
function whyRefused({ id }: Operation, { isOfProject, policy }: Shape): keyof typeof errors | undefined {
  if (policy === undefined) return isOfProject && ofOrganization.has(id) ? "insufficient_scope" : undefined;
  const row = needs[id];
  if (row === undefined) return "insufficient_scope";
  if (row === "nothing") return undefined;
  const [of, kind, ...needed] = row;
  const given = policy().map(({ action }) => action);
  if (of === "list" || needed.every((action) => given.includes(action))) return undefined;
  return of === "thing" && !given.some((action) => action.startsWith(`${kind}:`))
    ? missing[kind]
    : "insufficient_scope";
}

async function askerOf({ isOfProject, policy }: Shape): Promise<Asker> {
  const bearer = await bed.key({
    ...(isOfProject && { project_id: blue }),
    ...(policy && { policy: { statements: policy() } }),
  });
  return isOfProject ? { bearer } : { bearer, project: blue };
}

/** Asks for all of them about what stands there; gives what was answered otherwise than so. */
async function faultsOf(
  asker: Asker,
  asked: readonly Operation[],
  codeOf: (operation: Operation) => keyof typeof errors,
): Promise<readonly string[]> {
  const before = await bed.everything();
  const faults: string[] = [];
  for (const operation of asked) {
    const { of = "pool" } = scopeRows[operation.id] ?? {};
    const ask = askedOf(operation, standing[of], bed);
    const { status, body } = await bed.ask(asker, ask.path, ask.asked);
    const code = codeOf(operation);
    if (status !== errors[code].status || body.code !== code)
      faults.push(`${operation.id} ${ask.path}: ${status} ${body?.code}, not ${code}`);
  }
  expect(await bed.everything()).toEqual(before);
  return faults;
}

test("every operation of the document has a row, and no row is of none", () => {
  expect([...new Set(operations.map(({ id }) => id))].toSorted()).toEqual(Object.keys(scopeRows).toSorted());
  expect(operations.filter(({ path }) => path.startsWith("/projects"))).toHaveLength(7);
});

test.each(Object.entries(shapes))("%s is refused what it may not, and nothing changes", async (_, shape) => {
  const refused = operations.filter((operation) => whyRefused(operation, shape) !== undefined);
  const asker = await askerOf(shape);
  expect(await faultsOf(asker, refused, (operation) => whyRefused(operation, shape) ?? "internal")).toEqual(
    [],
  );
});

/** Whether it was answered as whoever is let in is answered. */
function isDone({ id }: Operation, { status }: Answer): boolean {
  const { answers } = scopeRows[id] ?? {};
  return answers === undefined ? status >= 200 && status < 300 : status === answers;
}

/** Each is a process, and a test has dozens. */
async function endSession(id: string | undefined): Promise<void> {
  if (id !== undefined) await bed.ask(bed.rootIn(blue), `/browsers/${id}`, { method: "DELETE" });
}

test.each(Object.entries(shapes))("%s does what it may", async (_, shape) => {
  const asker = await askerOf(shape);
  const faults: string[] = [];
  for (const operation of operations) {
    if (whyRefused(operation, shape) !== undefined) continue;
    const { of } = scopeRows[operation.id] ?? {};
    // A project is read and renamed by a key of its own.
    const isOwn = of === "project" && (shape.isOfProject || shape.policy !== undefined);
    const named = of === undefined ? "" : isOwn ? blue : await makeSubject(bed, of, blue);
    const ask = askedOf(operation, named, bed);
    const got = await bed.ask(asker, ask.path, ask.asked);
    await endSession(of === "session" ? named : got.body?.session_id);
    if (!isDone(operation, got)) faults.push(`${operation.id} ${ask.path}: ${JSON.stringify(got)}`);
  }
  expect(faults).toEqual([]);
});

test("a key of the project with a policy on one thing gets to that one, and knows of no other", async () => {
  for (const operation of operations) {
    const row = needs[operation.id];
    const { of } = scopeRows[operation.id] ?? {};
    if (row === undefined || row === "nothing" || row[0] !== "thing" || of === undefined) continue;
    const [, kind, ...needed] = row;
    const [one, other] = [await makeSubject(bed, of, blue), await makeSubject(bed, of, blue)];
    const statements = all(needed, `projects/${blue}/${kind}/${one}`);
    for (const isOfProject of [true, false]) {
      const asker = await askerOf({ isOfProject, policy: () => statements });
      const refused = askedOf(operation, other, bed);
      expect(await bed.ask(asker, refused.path, refused.asked), operation.id).toMatchObject({
        status: 404,
        body: { code: missing[kind] },
      });
    }
    const ask = askedOf(operation, one, bed);
    const asker = await askerOf({ isOfProject: true, policy: () => statements });
    const got = await bed.ask(asker, ask.path, ask.asked);
    expect(isDone(operation, got), `${operation.id} ${JSON.stringify(got)}`).toBe(true);
    for (const id of of === "session" ? [one, other] : []) await endSession(id);
  }
});

test("a key of the project changes no more of it than its name", async () => {
  const asker = await askerOf({ isOfProject: true });
  const before = await bed.everything();
  for (const path of [`/org/projects/${blue}`, `/projects/${blue}`])
    expect(await bed.ask(asker, path, { method: "PATCH", body: { status: "archived" } })).toMatchObject({
      status: 403,
      body: { code: "insufficient_scope" },
    });
  expect(await bed.everything()).toEqual(before);
});

/** Makes it so that a key lets nobody in any more; the code that it is refused with. */
const ends: Readonly<Record<string, () => Promise<readonly [Asker, keyof typeof errors]>>> = {
  "a key that was deleted": async () => {
    const made = await bed.made(bed.rootIn(blue), "/org/api_keys", { body: { name: "ends" } });
    await bed.ask(bed.rootIn(blue), `/org/api_keys/${made["id"]}`, { method: "DELETE" });
    return [{ bearer: String(made["key"]) }, "unauthorized"];
  },
  "a key that has expired": async () => {
    const made = await bed.made(bed.rootIn(blue), "/org/api_keys", { body: { name: "ends" } });
    const body = { expire_in_days: 0 };
    await bed.made(bed.rootIn(blue), `/org/api_keys/${made["id"]}/rotate`, { body });
    return [{ bearer: String(made["key"]) }, "unauthorized"];
  },
  "a key of an archived project": () => keyOfEnded({ method: "PATCH", body: { status: "archived" } }),
  "a key of a deleted project": () => keyOfEnded({ method: "DELETE" }),
};
async function keyOfEnded(end: object): Promise<readonly [Asker, keyof typeof errors]> {
  const id = await makeSubject(bed, "project", blue);
  const bearer = await bed.key({ project_id: id });
  expect((await bed.ask(bed.rootIn(blue), `/org/projects/${id}`, end)).status).toBeLessThan(300);
  return [{ bearer }, "project_not_found"];
}

test.each(Object.entries(ends))("%s gets to no operation, and nothing changes", async (_, end) => {
  const [asker, code] = await end();
  expect(await faultsOf(asker, operations, () => code)).toEqual([]);
});

test.each(["a key of the project", "a key of the project that may do all of it"])(
  "%s that names another project gets to no operation, and nothing changes",
  async (name) => {
    const shape = shapes[name];
    if (!shape) throw new Error(`no shape is called ${name}`);
    const { bearer } = await askerOf(shape);
    for (const { project } of bed.projects.filter((one) => one.project !== blue))
      expect(await faultsOf({ bearer, project }, operations, () => "insufficient_scope")).toEqual([]);
  },
);

test("each action of the vocabulary is asked for by some operation, but those of what is not there yet", () => {
  const asked = new Set(Object.values(needs).flatMap((row) => (row === "nothing" ? [] : row.slice(2))));
  const never = everyAction.filter((action) => !asked.has(action));
  expect(never).toEqual(["browsers:read"]);
});
