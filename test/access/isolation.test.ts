import { afterAll, beforeAll, expect, test } from "vitest";
import { type Furnished, partsOf, type Row, rows } from "../support/access/project-rows.js";
import { extensionZip } from "../support/archive/zip-bytes.js";
import { type Daemon, startDaemon } from "../support/daemon/daemon.js";
import { readDocument } from "../support/http/openapi-document.js";
import { field, file, multipartBody, multipartType } from "../support/http/multipart-body.js";

let daemon: Daemon;
let furnished: readonly Furnished[];
beforeAll(async () => {
  daemon = await startDaemon({
    file: { projects: { enabled: true }, telemetry: { export: { private_hosts: ["127.0.0.1"] } } },
  });
  const made = await Promise.all(
    ["blue", "green"].map((name) => daemon.call("POST /org/projects", { name })),
  );
  furnished = await Promise.all(["default", ...made.map(({ body }) => String(body.id))].map(furnish));
});
afterAll(() => daemon.stop());

interface Asked {
  readonly method?: string;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
  readonly payload?: string | Buffer;
}

const idFields = ["session_id", "id"] as const;
const idIn = (thing: Record<string, unknown>): string =>
  String(idFields.map((name) => thing[name]).find((id) => id !== undefined));

async function ask(project: string, path: string, { method = "GET", body, headers, payload }: Asked = {}) {
  const sent = payload ?? (body === undefined ? undefined : JSON.stringify(body));
  const reply = await fetch(daemon.url + path, {
    method,
    headers: {
      authorization: `Bearer ${daemon.apiKey}`,
      "x-kernel-project-id": project,
      ...(body !== undefined && { "content-type": "application/json" }),
      ...headers,
    },
    ...(sent !== undefined && { body: sent }),
  });
  const text = await reply.text();
  return {
    status: reply.status,
    body: text.startsWith("{") || text.startsWith("[") ? JSON.parse(text) : text,
  };
}

async function make(project: string, path: string, asked: Asked): Promise<string> {
  const got = await ask(project, path, { method: "POST", ...asked });
  if (got.status >= 300) throw new Error(`POST ${path} in ${project}: ${JSON.stringify(got.body)}`);
  return idIn(got.body);
}

/** Everything is called the same in each project. */
async function furnish(project: string): Promise<Furnished> {
  const upload = multipartBody([file("file", extensionZip()), field("name", "same")]);
  const config = { host: "127.0.0.1", port: 9, username: "me", password: "secret" };
  const [profile, proxy, extension, destination] = await Promise.all([
    make(project, "/profiles", { body: { name: "same" } }),
    make(project, "/proxies", { body: { type: "custom", name: "same", config } }),
    make(project, "/extensions", { payload: upload, headers: { "content-type": multipartType } }),
    make(project, "/telemetry/destinations", { body: { name: "same", endpoint: "http://127.0.0.1:9" } }),
  ]);
  const pool = await make(project, "/browser_pools", {
    body: { name: "same", size: 1, headless: true, profile: { name: "same" } },
  });
  const acquired = { name: "same", acquire_timeout_seconds: 50 };
  const session = await make(project, "/browser_pools/same/acquire", { body: acquired });
  return { project, pool, session, profile, proxy, extension, destination };
}

interface Operation {
  readonly id: string;
  readonly method: string;
  readonly path: string;
}
async function operations(): Promise<readonly Operation[]> {
  const { paths } = await readDocument<{ paths: Record<string, Record<string, { operationId: string }>> }>(
    daemon.url,
  );
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId: id }]) => ({
      id,
      method: method.toUpperCase(),
      path,
    })),
  );
}

const lists = {
  pool: "/browser_pools",
  session: "/browsers",
  profile: "/profiles",
  proxy: "/proxies",
  extension: "/extensions",
  destination: "/telemetry/destinations",
} as const;
type Kind = keyof typeof lists;
const kinds = Object.keys(lists) as Kind[];

/** All that a project shows, without what passes with time. */
async function everythingIn({ project }: Furnished): Promise<string> {
  const paths = [...Object.values(lists), "/browser_pools/same/browsers", "/browsers/same"];
  const shown = await Promise.all(paths.map((path) => ask(project, path)));
  return JSON.stringify(shown, (name, value: unknown) =>
    ["uptime_ms", "age_ms", "last_used_at", "requests", "usage"].includes(name) ? 0 : value,
  );
}

/** What is wrong with what the operation does in `own` with ids of `other`. */
async function faultOf(
  { id, method, path }: Operation,
  row: Row,
  [own, other]: readonly [Furnished, Furnished],
): Promise<readonly string[]> {
  const where = `${id} in ${own.project} with ids of ${other.project}`;
  switch (row.kind) {
    case "unbound":
      return [];
    case "list": {
      const { body } = await ask(own.project, `${path}?limit=100`);
      const ids = (body as Record<string, unknown>[]).map(idIn);
      return ids.length === 1 && ids[0] === own[row.of] ? [] : [`${where}: shows ${ids.join(", ")}`];
    }
    case "named": {
      const url = path.replace(/\{\w+\}/, other[row.of]);
      const got = await ask(own.project, url, { method, ...partsOf(row.body?.(other)) });
      const isHidden = got.status === 404 && String(got.body.code).endsWith("_not_found");
      return isHidden ? [] : [`${where}: ${got.status} ${JSON.stringify(got.body)}`];
    }
    case "refers": {
      const got = await Promise.all(
        row.bodies.map((body) => ask(own.project, path, { method, body: body(other) })),
      );
      return got.flatMap(({ status, body }, at) =>
        status === 400 ? [] : [`${where}, reference ${at}: ${status} ${JSON.stringify(body)}`],
      );
    }
  }
}

const pairs = (): readonly (readonly [Furnished, Furnished])[] =>
  furnished.flatMap((own) => furnished.flatMap((other) => (own === other ? [] : [[own, other] as const])));

test("every operation of the document has a row, and no row is of none", async () => {
  expect((await operations()).map(({ id }) => id).toSorted()).toEqual(Object.keys(rows).toSorted());
});

test("whatever an operation names of another project is not there, and nothing of it changes", async () => {
  const tried = (await operations()).flatMap((operation) => pairs().map((pair) => ({ operation, pair })));
  const before = await Promise.all(furnished.map(everythingIn));
  const faults: string[] = [];
  for (const { operation, pair } of tried) {
    const row = rows[operation.id];
    if (row) faults.push(...(await faultOf(operation, row, pair)));
  }
  expect(faults).toEqual([]);
  expect(await Promise.all(furnished.map(everythingIn))).toEqual(before);
});

test("a name means what bears it in the request's own project", async () => {
  for (const own of furnished)
    for (const kind of kinds.filter((one) => one !== "proxy")) {
      const path = `${lists[kind]}/same${kind === "extension" ? "/metadata" : ""}`;
      expect(idIn((await ask(own.project, path)).body), `${kind} of ${own.project}`).toBe(own[kind]);
    }
});

test("a pool of one's own gives back no browser of another project", async () => {
  for (const [own, other] of pairs()) {
    const given = { method: "POST", body: { session_id: other.session } };
    expect(await ask(own.project, `/browser_pools/${own.pool}/release`, given)).toMatchObject({
      status: 404,
      body: { code: "browser_not_found" },
    });
    expect(await ask(other.project, `/browsers/${other.session}`)).toMatchObject({ status: 200 });
  }
});

test("a browser of a project is released, lent again, ended and on its project's list of what is over", async () => {
  const [, own, other] = furnished;
  if (!own || !other) throw new Error("there are three projects");
  const release = { method: "POST", body: { session_id: own.session } };
  expect(await ask(own.project, "/browser_pools/same/release", release)).toMatchObject({ status: 204 });
  const acquired = { body: { name: "again", acquire_timeout_seconds: 50 } };
  const session = await make(own.project, `/browser_pools/${own.pool}/acquire`, acquired);
  expect(await ask(own.project, `/browsers/${session}`, { method: "DELETE" })).toMatchObject({ status: 204 });
  const over = async ({ project }: Furnished): Promise<readonly string[]> =>
    ((await ask(project, "/browsers?status=deleted")).body as Record<string, unknown>[]).map(idIn);
  expect([await over(own), await over(other)]).toEqual([[session], []]);
  const named = "/browsers/again?include_deleted=true";
  expect([await ask(own.project, named), await ask(other.project, named)]).toMatchObject([
    { status: 200 },
    { status: 404 },
  ]);
});
