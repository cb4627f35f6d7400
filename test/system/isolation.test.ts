import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { chmod, chown, mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { basename, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { workspaceOf } from "../support/browser/browser-processes.js";
import { until } from "../support/browser/chromium-until.js";
import { type Daemon, type Lease, startDaemon } from "../support/daemon/daemon.js";
import { connectRaw, type RawCdp } from "../support/gateway/raw-cdp.js";
import { attempts, shown } from "./file-attempts.js";

const marker = "the words that no browser may read";
let daemon: Daemon;
let site: Server;
let origin: string;
let directory: string;
let neighbour: Lease;
/** Files of the host, each with words of its own that must not come through. */
let files: { readonly path: string; readonly words: string; readonly mayOnlyDaemon?: true }[];
/** A page at the site, which is none of those that other tests have just closed. */
const openPage = async (client: RawCdp): Promise<string> => {
  const { result } = await client.send("Target.createTarget", { url: origin });
  const page = await client.attach(String(result?.targetId));
  await until("the page", () => client.evaluate("document.querySelector('input') !== null", page));
  return page;
};
/** The root of a browser's directories is the daemon's; its group is the browser's. */
const uidOf = async (root: string): Promise<number> => (await stat(root)).gid;

beforeAll(async () => {
  daemon = await startDaemon({ drawsKeys: true });
  directory = await mkdtemp("/var/tmp/remuda-test-isolation-");
  await chmod(directory, 0o755);
  neighbour = (
    await daemon.call("POST /browsers", {
      headless: false,
      viewport: { width: 800, height: 600 },
      timeout_seconds: 600,
    })
  ).body as Lease;
  const root = workspaceOf(daemon.place.scratchDirectory, neighbour.session_id);
  const profileFile = join(root, "profile", "held.txt");
  const uid = await uidOf(root);
  await writeFile(profileFile, marker, { mode: 0o644 });
  await chown(profileFile, uid, uid);
  const open = join(directory, "open.txt");
  await writeFile(open, marker, { mode: 0o644 });
  const { dataDir } = daemon.place;
  files = [
    {
      path: join(dataDir, "api-key"),
      words: readFileSync(join(dataDir, "api-key"), "utf8").trim(),
      mayOnlyDaemon: true,
    },
    {
      path: join(
        dataDir,
        "redis",
        "appendonlydir",
        readdirSync(join(dataDir, "redis/appendonlydir")).find((name) => name.endsWith(".aof")) ?? "",
      ),
      words: "remuda:schema",
      mayOnlyDaemon: true,
    },
    { path: profileFile, words: marker },
    // Readable for every uid: only the rules for files keep it.
    { path: open, words: marker },
  ];
  site = createServer((request, response) => {
    const target = new URL(request.url ?? "/", "http://here").searchParams.get("to");
    if (target !== null) return response.writeHead(302, { location: target }).end();
    return response.setHeader("content-type", "text/html").end("<!doctype html><input type=file><body>hello");
  });
  await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
});
afterAll(async () => {
  site.closeAllConnections();
  site.close();
  await rm(directory, { recursive: true });
  await daemon.stop();
});

describe.each([{ engine: "headless-shell" }, { engine: "chromium" }])("$engine", ({ engine }) => {
  let session: Lease;
  beforeAll(async () => {
    session = (await daemon.call("POST /browsers", { headless: true, engine, timeout_seconds: 600 }))
      .body as Lease;
  });

  const tryAll = (name: string, wanted: typeof files): Promise<unknown> =>
    Promise.all(
      wanted.map(async ({ path, words }) => {
        const client = await connectRaw(session.cdp_ws_url);
        const { result } = await client.send("Target.createTarget", { url: "about:blank" });
        expect(result?.targetId).toBeDefined();
        const page = await client.attach(String(result?.targetId));
        await client.send("Page.enable", {}, page);
        const given = JSON.stringify(await attempts[name]?.(client, page, { path, origin }));
        for (const text of [given, await shown(client)]) expect(text.includes(words) && path).toBe(false);
        await client.send("Target.closeTarget", { targetId: result?.targetId });
        await client.close();
      }),
    );

  test.each(Object.keys(attempts))(
    "no client reads a neighbour's profile or other files of the host: %s",
    async (name) => {
      await tryAll(
        name,
        files.filter(({ mayOnlyDaemon }) => !mayOnlyDaemon),
      );
    },
  );

  // What cannot reach a file that every uid may read reaches none of the daemon's own: one of each sort will
  // do.
  test.each(["Page.navigate", "Target.createTarget", "DOM.setFileInputFiles"])(
    "no client reads the keys or Redis: %s",
    async (name) => {
      await tryAll(
        name,
        files.filter(({ mayOnlyDaemon }) => mayOnlyDaemon),
      );
    },
  );

  test("a client reads what lies in the session's own directories", async () => {
    const client = await connectRaw(session.cdp_ws_url);
    const page = await openPage(client);
    const root = workspaceOf(daemon.place.scratchDirectory, session.session_id);
    const uid = await uidOf(root);
    const own = join(root, "uploads", "own.txt");
    await writeFile(own, "own words");
    await chown(own, uid, uid);
    const { result } = await client.send(
      "Runtime.evaluate",
      { expression: "document.querySelector('input')" },
      page,
    );
    await client.send(
      "DOM.setFileInputFiles",
      { files: [own], objectId: ((result?.result ?? {}) as { objectId?: string }).objectId },
      page,
    );
    expect(await client.evaluate("document.querySelector('input').files[0].text()", page)).toBe("own words");
    await client.close();
  });

  test("downloads stay in the session's own directory, wherever a client sends them", async () => {
    const client = await connectRaw(session.cdp_ws_url);
    await client.send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath: directory });
    const page = await openPage(client);
    await client.evaluate(
      "Object.assign(document.createElement('a'), { href: URL.createObjectURL(new Blob(['x'])), download: 'got.txt' }).click()",
      page,
    );
    const downloads = join(workspaceOf(daemon.place.scratchDirectory, session.session_id), "Downloads");
    await expect.poll(() => readdirSync(downloads)).toContain("got.txt");
    expect(readdirSync(directory)).toEqual(["open.txt"]);
    await client.close();
  });
});

test("no start page is a file of the host", async () => {
  const { body: pool } = await daemon.call("POST /browser_pools", {
    name: "start",
    size: 1,
    headless: true,
    fill_rate_per_minute: 0,
  });
  for (const start_url of [
    "file:///etc/passwd",
    "FILE:/etc/passwd",
    " file:///etc/passwd",
    "view-source:file:///etc/passwd",
    "filesystem:file:///x",
    "javascript:1",
    "chrome://version",
    "about:inspect",
    "devtools://devtools/bundled/inspector.html",
  ]) {
    for (const operation of [
      "POST /browsers",
      "POST /browser_pools/start/acquire",
      `PATCH /browsers/${neighbour.session_id}`,
      "PATCH /browser_pools/start",
    ]) {
      expect(await daemon.call(operation, { start_url }), `${operation} ${start_url}`).toMatchObject({
        status: 400,
        body: { code: "bad_request" },
      });
    }
  }
  await daemon.call(`DELETE /browser_pools/${pool.id}`);
});

test("no browser finds its neighbour's display", async () => {
  const root = workspaceOf(daemon.place.scratchDirectory, neighbour.session_id);
  const uid = await uidOf(root);
  const socket = join(root, "display", readdirSync(join(root, "display"))[0] ?? "");
  const finds = (as: number, path: string): Promise<boolean> =>
    new Promise((resolve) => {
      execFile("setpriv", [`--reuid=${as}`, `--regid=${as}`, "--clear-groups", "test", "-S", path], (error) =>
        resolve(error === null),
      );
    });
  expect([await finds(uid, socket), await finds(uid + 1, socket)]).toEqual([true, false]);
  const shared = await readdir("/tmp/.X11-unix").catch(() => []);
  expect(shared).not.toContain(basename(socket));
});
