import { randomBytes } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import { chown, mkdir, readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import { defaultProject } from "../../../src/base/ids.js";
import { DirectoryArchives } from "../../../src/archive/directory-archives.js";
import { makeSweep } from "../../../src/archive/sweep.js";
import { RedisExtensionStore } from "../../../src/store/project/extension-store.js";
import { RedisProfileStore } from "../../../src/store/project/profile-store.js";
import { connectAlone } from "../../../src/store/redis/connect.js";
import { ScriptStore } from "../../../src/store/redis/redis.js";
import { workspaceOf } from "../../support/browser/browser-processes.js";
import { takeCensus } from "../../support/browser/chromium-census.js";
import { silentLog } from "../../support/browser/chromium-host.js";
import { until } from "../../support/browser/chromium-until.js";
import { type Lease, uidsIn } from "../../support/daemon/daemon.js";
import { type DaemonProcess, spawnDaemon } from "../../support/daemon/daemon-process.js";
import { DaemonPlace } from "../../support/daemon/daemon-settings.js";
import { key } from "../../support/http/http-server.js";
import { openLoginSite, type LoginSite } from "../../support/browser/sites/login-site.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import { keysAbout } from "../../support/store/redis-look.js";
import { extensionZip } from "../../support/archive/zip-bytes.js";

let site: LoginSite;
beforeAll(async () => {
  site = await openLoginSite();
});
afterAll(() => site.close());

const limitMs = 60_000;
const created = async (daemon: DaemonProcess, body: object = {}): Promise<Lease> =>
  (await daemon.call("POST /browsers", { headless: true, timeout_seconds: 600, ...body })).body as Lease;

async function visit(lease: Lease, path: string): Promise<unknown> {
  const client = await connectRaw(lease.cdp_ws_url);
  const page = await client.attach();
  await client.send("Page.navigate", { url: site.origin + path }, page);
  const title = await until(
    `${path} loaded`,
    async () =>
      (await client.evaluate(
        `document.readyState === "complete" && location.pathname === "${path}" && document.title`,
        page,
      )) || undefined,
  );
  await client.close();
  return title;
}

const partitionOf = ({ place }: DaemonProcess, { session_id }: Lease): string =>
  workspaceOf(place.scratchDirectory, session_id);

/** State that cannot be compressed, so that its save takes a while. */
async function fatten(daemon: DaemonProcess, lease: Lease): Promise<void> {
  const profile = join(partitionOf(daemon, lease), "profile");
  const { uid, gid } = await stat(profile);
  const directory = join(profile, "Default", "a site's files");
  await mkdir(directory);
  const names = Array.from({ length: 12 }, (_, index) => join(directory, String(index)));
  for (const name of names) await writeFile(name, randomBytes(2 ** 24));
  for (const name of [directory, ...names]) await chown(name, uid, gid);
}

/** The profile `login` is logged in, by a save that was whole. */
async function savedOnce(daemon: DaemonProcess): Promise<void> {
  await daemon.call("POST /profiles", { name: "login" });
  const lease = await created(daemon, { profile: { name: "login", save_changes: true } });
  await visit(lease, "/login");
  expect((await daemon.call(`DELETE /browsers/${lease.session_id}`)).status).toBe(204);
  expect(await archiveFiles(daemon), daemon.log.slice(-4000)).toHaveLength(1);
}

const staged = ({ place }: DaemonProcess): Promise<number> =>
  readdir(join(place.dataDir, "staging")).then(
    async (names) =>
      Math.max(
        0,
        ...(await Promise.all(
          names.map((name) =>
            // One may have become an archive since.
            stat(join(place.dataDir, "staging", name)).then(
              ({ size }) => size,
              () => 0,
            ),
          ),
        )),
      ),
    () => 0,
  );

function upload(daemon: DaemonProcess, { session_id }: Lease, count: number): Promise<unknown> {
  const form = new FormData();
  for (let index = 0; index < count; index += 1) {
    const files = Array.from({ length: 200 }, (_, file) => ({
      name: `${file}.txt`,
      content: randomBytes(2000),
      method: 0,
    }));
    form.append(`extensions[${index}][name]`, `e${index}`);
    form.append(`extensions[${index}][zip_file]`, new Blob([extensionZip(files)]), `e${index}.zip`);
  }
  return fetch(`${daemon.url}/browsers/${session_id}/extensions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    body: form,
  });
}

interface Cut {
  readonly lease: Lease;
  /** What the daemon is killed in the middle of. */
  readonly asked: Promise<unknown>;
}

/** Brings a daemon to the middle of something. */
const stages: Readonly<Record<string, (daemon: DaemonProcess) => Promise<Cut>>> = {
  async "an upload arrives"(daemon) {
    const lease = await created(daemon, { engine: "chromium" });
    const asked = upload(daemon, lease, 20);
    await until("bytes of it", async () => (await staged(daemon)) > 0);
    return { lease, asked };
  },
  async "an upload is unpacked"(daemon) {
    const lease = await created(daemon, { engine: "chromium" });
    const asked = upload(daemon, lease, 20);
    await until("files of it", () => readdirSync(join(partitionOf(daemon, lease), "extensions")).length > 3);
    return { lease, asked };
  },
  async "a browser restarts"(daemon) {
    const lease = await created(daemon);
    const asked = daemon.call(`PATCH /browsers/${lease.session_id}`, {
      profile: { name: "login", save_changes: true },
    });
    await until("the restart", () => existsSync(join(partitionOf(daemon, lease), "profile-before")));
    return { lease, asked };
  },
  async "a profile is saved"(daemon) {
    const lease = await created(daemon, { profile: { name: "login", save_changes: true } });
    await fatten(daemon, lease);
    const asked = daemon.call(`DELETE /browsers/${lease.session_id}`);
    await until("bytes of it", async () => (await staged(daemon)) > 2 ** 20);
    return { lease, asked };
  },
  async "a saved profile becomes an archive"(daemon) {
    const lease = await created(daemon, { profile: { name: "login", save_changes: true } });
    await fatten(daemon, lease);
    const known = await archiveFiles(daemon);
    const asked = daemon.call(`DELETE /browsers/${lease.session_id}`);
    await until("a file of it", async () =>
      (await archiveFiles(daemon)).some((name) => !known.includes(name)),
    );
    return { lease, asked };
  },
};

const archiveFiles = async ({ place }: DaemonProcess): Promise<readonly string[]> =>
  (await readdir(join(place.dataDir, "archives"), { recursive: true, withFileTypes: true }).catch(() => []))
    .filter((entry) => entry.isFile())
    .map(({ name }) => name);

/** Runs the sweep as if its time had come, and gives what is left beside what the registries name. */
async function sweep(daemon: DaemonProcess): Promise<{ kept: readonly string[]; named: readonly string[] }> {
  const url = join(daemon.place.dataDir, "redis/redis.sock");
  const store = new ScriptStore(
    connectAlone({ url, isCluster: false, connectTimeoutMs: 2000, commandTimeoutMs: 10_000 }),
    silentLog,
  );
  await store.open(new AbortController().signal);
  const [profiles, extensions] = [
    await new RedisProfileStore(store, defaultProject).all(),
    await new RedisExtensionStore(store, defaultProject).all(),
  ];
  const named = [
    ...profiles.flatMap(({ archive }) => archive?.digest ?? []),
    ...extensions.map(({ digest }) => digest),
  ];
  const archives = new DirectoryArchives(join(daemon.place.dataDir, "archives"), systemClock);
  await makeSweep({
    archives,
    named: async () => new Set(named),
    unusedMs: -1000,
    clock: systemClock,
    log: silentLog,
  })();
  await store.close();
  return { kept: await archiveFiles(daemon), named };
}

test.each(Object.keys(stages))(
  "a daemon killed while %s: the next start finds registry and disk whole, and nothing of it left",
  async (stage) => {
    const place = new DaemonPlace({});
    const daemon = await spawnDaemon(place);
    await savedOnce(daemon);
    const cut = await stages[stage]?.(daemon);
    if (!cut) throw new Error("no such stage");
    cut.asked.catch(() => {});
    await daemon.end("SIGKILL");
    const uids = new Set([...uidsIn(daemon.log), 200_000]);
    await until(
      "no process left",
      async () => (await takeCensus(place.scratchDirectory, uids)).processes.length === 0,
      limitMs,
    );

    const next = await spawnDaemon(place);
    const { session_id: id } = cut.lease;
    expect(existsSync(workspaceOf(place.scratchDirectory, id))).toBe(false);
    expect(await readdir(join(place.dataDir, "staging"))).toEqual([]);
    await until(
      "no key speaks of it",
      async () => (await keysAbout(join(place.dataDir, "redis/redis.sock"), [id])).length === 0,
      limitMs,
    );
    const { kept, named } = await sweep(next);
    expect(kept.toSorted()).toEqual([...named].toSorted());
    const lease = await created(next, { profile: { name: "login" } });
    expect(await visit(lease, "/")).toBe("welcome back");
    await next.call(`DELETE /browsers/${lease.session_id}`);
    await next.stop(daemon.log);
  },
);
