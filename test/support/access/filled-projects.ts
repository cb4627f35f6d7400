import { afterAll, beforeAll } from "vitest";
import { extensionZip } from "../archive/zip-bytes.js";
import { type FakeChromium, makeFakeChromium, standIn } from "../browser/chromium-fake.js";
import { type Daemon, startDaemon } from "../daemon/daemon.js";
import { destinationBody } from "../http/recorded-audit.js";
import { field, file, multipartBody, multipartType } from "../http/multipart-body.js";
import { readDocument } from "../http/openapi-document.js";
import { type FilledProject, nameOnlyIn, oneItem } from "./project-rows.js";

/** Who asks: with which credential, and naming which project. */
export interface Asker {
  readonly bearer: string;
  readonly project?: string;
}
export interface Asked {
  readonly method?: string;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
  readonly payload?: string | Buffer;
}
export interface Answer {
  readonly status: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- replies are looked into, field by field, by the tests
  readonly body: any;
}
export interface Operation {
  readonly id: string;
  readonly method: string;
  readonly path: string;
}

const idFields = ["session_id", "id"] as const;
export const idIn = (thing: Record<string, unknown>): string =>
  String(idFields.map((name) => thing[name]).find((id) => id !== undefined));

export const lists = {
  pool: "/browser_pools",
  session: "/browsers",
  profile: "/profiles",
  proxy: "/proxies",
  extension: "/extensions",
  destination: "/telemetry/destinations",
  vault: "/vaults",
} as const;
export const upload = (name: string): Asked => ({
  payload: multipartBody([file("file", extensionZip()), field("name", name)]),
  headers: { "content-type": multipartType },
});
export const proxyConfig = { host: "127.0.0.1", port: 9, username: "me", password: "secret" };
const exportPath = "/audit-logs/export/destinations";

/** What passes with time, or is told of those who have asked. */
const passing = ["uptime_ms", "age_ms", "last_used_at", "requests", "usage"];

/** On a busy machine nobody is lost who is only slow, and nothing ends that is lent there. */
const patient = {
  acquire: { control_lost_after_ms: 60_000, provisional_seconds: 60 },
  node: { lost_after_ms: 60_000 },
};

/** A daemon with three projects that have one thing of each kind, called the same in each. */
export class FilledProjects {
  #started: { daemon: Daemon; fake: FakeChromium; projects: readonly FilledProject[] } | undefined;

  async start(): Promise<void> {
    const fake = await makeFakeChromium();
    const daemon = await startDaemon({
      file: {
        ...standIn(fake),
        ...patient,
        projects: { enabled: true },
        telemetry: { export: { private_hosts: ["127.0.0.1"] } },
        audit: { export: { assume_role: false } },
      },
    });
    this.#started = { daemon, fake, projects: [] };
    const root = { bearer: daemon.apiKey };
    const names = ["blue", "green"];
    const made = await Promise.all(names.map((name) => this.make(root, "/org/projects", { body: { name } })));
    const projects = await Promise.all(["default", ...made].map((project) => this.#fill(project)));
    this.#started = { daemon, fake, projects };
    await this.make(root, exportPath, { body: destinationBody() });
  }

  async stop(): Promise<void> {
    await this.daemon.stop();
    await this.#running.fake.remove();
  }

  get #running() {
    if (!this.#started) throw new Error("the daemon is not started");
    return this.#started;
  }
  get daemon(): Daemon {
    return this.#running.daemon;
  }
  /** The default one, and two others. */
  get projects(): readonly FilledProject[] {
    return this.#running.projects;
  }
  get pairs(): readonly (readonly [FilledProject, FilledProject])[] {
    return this.projects.flatMap((own) =>
      this.projects.flatMap((other) => (own === other ? [] : [[own, other] as const])),
    );
  }
  /** The root key, asking about a project. */
  rootIn = (project: string): Asker => ({ bearer: this.daemon.apiKey, project });

  async ask(asker: Asker, path: string, asked: Asked = {}): Promise<Answer> {
    const { method = "GET", body, headers, payload } = asked;
    const sent = payload ?? (body === undefined ? undefined : JSON.stringify(body));
    const reply = await fetch(this.daemon.url + path, {
      method,
      headers: {
        authorization: `Bearer ${asker.bearer}`,
        ...(asker.project !== undefined && { "x-kernel-project-id": asker.project }),
        ...(body !== undefined && { "content-type": "application/json" }),
        ...headers,
      },
      ...(sent !== undefined && { body: sent }),
    });
    const text = reply.headers.get("content-type")?.startsWith("text/event-stream")
      ? await reply.body?.cancel()
      : await reply.text();
    const isJson = text !== undefined && (text.startsWith("{") || text.startsWith("["));
    return { status: reply.status, body: isJson ? parsed(text) : text };
  }

  /** The id of what is made so. */
  async make(asker: Asker, path: string, asked: Asked): Promise<string> {
    return idIn(await this.made(asker, path, asked));
  }

  async made(asker: Asker, path: string, asked: Asked): Promise<Record<string, unknown>> {
    const got = await this.ask(asker, path, { method: "POST", ...asked });
    if (got.status >= 300) throw new Error(`POST ${path}: ${got.status} ${JSON.stringify(got.body)}`);
    return got.body as Record<string, unknown>;
  }

  /** The text of a key that root has made. */
  async key(body: object): Promise<string> {
    const root = { bearer: this.daemon.apiKey };
    return String((await this.made(root, "/org/api_keys", { body: { name: "made", ...body } }))["key"]);
  }

  async #fill(project: string): Promise<FilledProject> {
    const there = this.rootIn(project);
    const [same, only, key] = await Promise.all([
      this.#register(there, "same"),
      this.#register(there, nameOnlyIn(project)),
      this.key({ project_id: project }),
    ]);
    const body = { name: "same", size: 1, headless: true, profile: { name: "same" } };
    const pool = await this.make(there, "/browser_pools", { body });
    const acquired = { name: "same", acquire_timeout_seconds: 50 };
    const session = await this.make(there, "/browser_pools/same/acquire", { body: acquired });
    const created = { name: nameOnlyIn(project), headless: true, timeout_seconds: 3600 };
    const onDemand = await this.make(there, "/browsers", { body: created });
    const ids = new Set([...Object.values(same), ...Object.values(only), pool, session, onDemand]);
    return { project, key, pool, session, onDemand, ...same, ids };
  }

  async #register(there: Asker, name: string) {
    const make = (path: string, asked: Asked): Promise<string> => this.make(there, path, asked);
    const [profile, proxy, extension, destination, vault] = await Promise.all([
      make("/profiles", { body: { name } }),
      make("/proxies", { body: { type: "custom", name, config: proxyConfig } }),
      make("/extensions", upload(name)),
      make("/telemetry/destinations", { body: { name, endpoint: "http://127.0.0.1:9" } }),
      make("/vaults", { body: { name } }),
    ]);
    await this.addItem(there, vault);
    return { profile, proxy, extension, destination, vault };
  }

  async addItem(asker: Asker, vault: string): Promise<void> {
    const path = `/vaults/${vault}/items/${vault}`;
    const got = await this.ask(asker, path, { method: "PUT", body: oneItem });
    if (got.status !== 200) throw new Error(`PUT ${path}: ${got.status} ${JSON.stringify(got.body)}`);
  }

  /** The operations of the document. */
  async operations(): Promise<readonly Operation[]> {
    const document = await readDocument<{ paths: Record<string, Record<string, { operationId: string }>> }>(
      this.daemon.url,
    );
    return Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { operationId: id }]) => ({
        id,
        method: method.toUpperCase(),
        path,
      })),
    );
  }

  /** All that a project shows, without what passes with time. */
  async everythingIn({ project }: FilledProject): Promise<string> {
    const paths = [
      ...Object.values(lists),
      "/browser_pools/same/browsers",
      "/browsers/same",
      "/vaults/same/items",
    ];
    return await this.#shown(this.rootIn(project), paths);
  }

  /** All that there is: of each project, and of the organization. */
  async everything(): Promise<readonly string[]> {
    const ofOrganization = ["/org/projects", "/org/api_keys?status=all&limit=100", "/org/limits", exportPath];
    const limits = this.projects.map(({ project }) => `/org/projects/${project}/limits`);
    return await Promise.all([
      ...this.projects.map((project) => this.everythingIn(project)),
      this.#shown({ bearer: this.daemon.apiKey }, [...ofOrganization, ...limits]),
    ]);
  }

  async #shown(asker: Asker, paths: readonly string[]): Promise<string> {
    const shown = await Promise.all(paths.map((path) => this.ask(asker, path)));
    return JSON.stringify(shown, (name, value: unknown) => (passing.includes(name) ? 0 : value));
  }
}

/** Archives and exports of the log begin as JSON does, and are none. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** One for all tests of a file. */
export function sharedFilledProjects(): FilledProjects {
  const bed = new FilledProjects();
  beforeAll(() => bed.start(), 120_000);
  afterAll(() => bed.stop());
  return bed;
}
