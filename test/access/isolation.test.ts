import { expect, test } from "vitest";
import {
  type Answer,
  type Asked,
  type Asker,
  idIn,
  lists,
  type Operation,
  sharedFilledProjects,
  upload,
} from "../support/access/filled-projects.js";
import {
  type FilledProject,
  missing,
  nameOnlyIn,
  nowhere,
  partsOf,
  type Row,
  rows,
} from "../support/access/project-rows.js";

const bed = sharedFilledProjects();
const ask = (project: string, path: string, asked?: Asked): Promise<Answer> =>
  bed.ask(bed.rootIn(project), path, asked);
type Kind = keyof typeof lists;
const kinds = Object.keys(lists) as Kind[];

/** Whoever asks in a project: the root key by naming it, or a key of it. */
const askers: readonly ((own: FilledProject) => Asker)[] = [
  ({ project }) => bed.rootIn(project),
  ({ key }) => ({ bearer: key }),
];

const naming = (path: string, text: string): string => path.replaceAll(/\{\w+\}/g, text);

/** An answer without what was named in its request. */
const withoutNames = ({ status, body }: Answer, { ids, project }: FilledProject): string =>
  [...ids, nameOnlyIn(project)].reduce(
    (text, name) => text.replaceAll(name, "that"),
    `${status} ${JSON.stringify(body)}`,
  );

/** What is wrong with what the operation does in `own` with ids of `other`. */
async function faultsOf(
  { id, method, path }: Operation,
  row: Row,
  { asker, own, other }: { asker: Asker; own: FilledProject; other: FilledProject },
): Promise<readonly string[]> {
  const where = `${id} in ${own.project} with ids of ${other.project}`;
  switch (row.kind) {
    case "unbound":
      return [];
    case "list": {
      const { body } = await bed.ask(asker, `${path}?limit=100`);
      const ids = (body as Record<string, unknown>[]).map(idIn);
      const isOwn = ids.includes(own[row.of]) && ids.every((one) => own.ids.has(one));
      return isOwn ? [] : [`${where}: shows ${ids.join(", ")}`];
    }
    case "named": {
      // Pools, and what they have lent, are called the same in every project.
      const isNamed = row.of !== "pool" && row.of !== "session";
      const texts = [other[row.of], ...(isNamed ? [nameOnlyIn(other.project)] : [])];
      const got = await Promise.all(
        texts.map((text) => bed.ask(asker, naming(path, text), { method, ...partsOf(row.body?.(other)) })),
      );
      return got.flatMap(({ status, body }) =>
        status === 404 && body.code === missing[row.of]
          ? []
          : [`${where}: ${status} ${JSON.stringify(body)}`],
      );
    }
    case "refers": {
      const url = row.of ? naming(path, own[row.of]) : path;
      const told = (to: FilledProject): Promise<readonly string[]> =>
        Promise.all(
          row.bodies.map(async (body) =>
            withoutNames(await bed.ask(asker, url, { method, body: body(to) }), to),
          ),
        );
      const [foreign, unknown] = [await told(other), await told(nowhere)];
      return foreign.flatMap((text, at) =>
        row.told.test(text) && text === unknown[at]
          ? []
          : [`${where}, reference ${at}: ${text}, where nothing is so called: ${unknown[at]}`],
      );
    }
  }
}

test("every operation of the document has a row, and no row is of none", async () => {
  expect((await bed.operations()).map(({ id }) => id).toSorted()).toEqual(Object.keys(rows).toSorted());
});

test("whatever an operation names of another project is not there, and nothing of it changes", async () => {
  const tried = (await bed.operations()).flatMap((operation) =>
    bed.pairs.flatMap(([own, other]) => askers.map((as) => ({ operation, own, other, asker: as(own) }))),
  );
  const before = await bed.everything();
  const faults: string[] = [];
  for (const { operation, ...who } of tried) {
    for (const row of [rows[operation.id] ?? []].flat())
      faults.push(...(await faultsOf(operation, row, who)));
  }
  expect(faults).toEqual([]);
  expect(await bed.everything()).toEqual(before);
}, 400_000);

test("a key of one project that names another is refused by every operation, and nothing changes", async () => {
  const before = await bed.everything();
  for (const { id, method, path } of await bed.operations()) {
    if (["getHealth", "getReadiness", "getMetrics"].includes(id)) continue;
    for (const [own, other] of bed.pairs) {
      const asker = { bearer: own.key, project: other.project };
      const got = await bed.ask(asker, path.replaceAll(/\{\w+\}/g, other.pool), { method });
      expect(got, id).toMatchObject({ status: 403, body: { code: "insufficient_scope" } });
    }
  }
  expect(await bed.everything()).toEqual(before);
});

test("a name means what bears it in the request's own project", async () => {
  for (const own of bed.projects)
    for (const kind of kinds.filter((one) => one !== "proxy")) {
      const path = `${lists[kind]}/same${kind === "extension" ? "/metadata" : ""}`;
      expect(idIn((await ask(own.project, path)).body), `${kind} of ${own.project}`).toBe(own[kind]);
    }
});

/** A body that names something of its kind. */
const namedBy: Readonly<Partial<Record<Kind, object>>> = {
  profile: { profile: { name: "same" } },
  extension: { extensions: [{ name: "same" }] },
  vault: { vaults: [{ name: "same" }] },
  proxy: { network: { proxy_routes: [{ hosts: ["a.example"], proxy: { name: "same" } }] } },
  destination: {
    telemetry: { enabled: true, export: { otlp: { enabled: true, destination: { name: "same" } } } },
  },
};

test("a name in a body means what bears it in the request's own project", async () => {
  const tried = bed.projects.flatMap((own) =>
    askers.flatMap((as) => Object.entries(namedBy).map(([kind, refers]) => ({ own, as, kind, refers }))),
  );
  for (const { own, as, kind, refers } of tried) {
    const body = { size: 1, headless: true, fill_rate_per_minute: 0, ...refers };
    const pool = await bed.make(as(own), "/browser_pools", { body });
    const path = `${lists[kind as Kind]}/${own[kind as Kind]}`;
    const used = await bed.ask(as(own), path, { method: "DELETE" });
    expect(used.body.code, `${kind} of ${own.project}`).toMatch(/_in_use$/);
    expect(JSON.stringify(used.body.details)).toContain(pool);
    await bed.ask(as(own), `/browser_pools/${pool}`, { method: "DELETE" });
  }
});

test("a pool of one's own gives back no browser of another project", async () => {
  for (const [own, other] of bed.pairs) {
    for (const session_id of [other.session, other.onDemand]) {
      const given = { method: "POST", body: { session_id } };
      expect(await ask(own.project, `/browser_pools/${own.pool}/release`, given)).toMatchObject({
        status: 404,
        body: { code: "browser_not_found" },
      });
      expect(await ask(other.project, `/browsers/${session_id}`)).toMatchObject({ status: 200 });
    }
  }
});

test("a browser of a project is released, lent again, ended and on its project's list of what is over", async () => {
  const [, own, other] = bed.projects;
  if (!own || !other) throw new Error("there are three projects");
  const release = { method: "POST", body: { session_id: own.session } };
  expect(await ask(own.project, "/browser_pools/same/release", release)).toMatchObject({ status: 204 });
  const acquired = { body: { name: "again", acquire_timeout_seconds: 50 } };
  const session = await bed.make(bed.rootIn(own.project), `/browser_pools/${own.pool}/acquire`, acquired);
  expect(await ask(own.project, `/browsers/${session}`, { method: "DELETE" })).toMatchObject({ status: 204 });
  const over = async ({ project }: FilledProject): Promise<readonly string[]> =>
    ((await ask(project, "/browsers?status=deleted")).body as Record<string, unknown>[]).map(idIn);
  expect([await over(own), await over(other)]).toEqual([[session], []]);
  const named = "/browsers/again?include_deleted=true";
  expect([await ask(own.project, named), await ask(other.project, named)]).toMatchObject([
    { status: 200 },
    { status: 404 },
  ]);
});

test("a project is deleted once nothing is left in it: no session, extension or OTLP destination either", async () => {
  const project = await bed.make(bed.rootIn("default"), "/org/projects", { body: { name: "emptied" } });
  const there = bed.rootIn(project);
  const things = [
    ["/browsers", { body: { headless: true, timeout_seconds: 3600 } }, "archived"],
    ["/extensions", upload("mine"), undefined],
    ["/telemetry/destinations", { body: { name: "mine", endpoint: "http://127.0.0.1:9" } }, undefined],
    ["/vaults", { body: { name: "mine" } }, undefined],
  ] as const;
  const end = (): Promise<Answer> => ask("default", `/org/projects/${project}`, { method: "DELETE" });
  const refused = { status: 409, body: { code: "project_not_empty" } };
  for (const [path, sent, status] of things) {
    const id = await bed.make(there, path, sent);
    expect(await end(), path).toMatchObject(refused);
    if (status !== undefined) {
      const patch = { method: "PATCH", body: { status } };
      expect(await ask("default", `/org/projects/${project}`, patch)).toMatchObject(refused);
    }
    expect(await bed.ask(there, `${path}/${id}`, { method: "DELETE" })).toMatchObject({ status: 204 });
  }
  expect(await end()).toMatchObject({ status: 204 });
});
