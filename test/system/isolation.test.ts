import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { chmod, chown, mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { basename, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { workspaceOf } from "../support/browser/browser-processes.js";
import { type Daemon, type Lease, startDaemon } from "../support/daemon/daemon.js";
import { connectRaw, type RawCdp } from "../support/gateway/raw-cdp.js";

const marker = "the words that no browser may read";
let daemon: Daemon;
let site: Server;
let origin: string;
let directory: string;
let neighbour: Lease;
/** Files of the host, each with words of its own that must not come through. */
let files: { readonly path: string; readonly words: string }[];
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
    { path: join(dataDir, "api-key"), words: readFileSync(join(dataDir, "api-key"), "utf8").trim() },
    {
      path: join(
        dataDir,
        "redis",
        "appendonlydir",
        readdirSync(join(dataDir, "redis/appendonlydir")).find((name) => name.endsWith(".aof")) ?? "",
      ),
      words: "remuda:schema",
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

/** A way to a file; what it gives, and whatever pages then show, must not contain the file's words. */
type Attempt = (client: RawCdp, page: string, path: string) => Promise<unknown>;
const inPage =
  (script: (url: string) => string): Attempt =>
  async (client, page, path) => {
    await client.send("Page.navigate", { url: origin }, page);
    return await client.send(
      "Runtime.evaluate",
      {
        expression: limited(script(`file://${path}`)),
        awaitPromise: true,
        returnByValue: true,
        userGesture: true,
      },
      page,
    );
  };
const limited = (work: string): string =>
  `Promise.race([(async () => { ${work} })().catch(String), new Promise((resolve) => setTimeout(resolve, 500))])`;
const navigate =
  (urlOf: (path: string) => string): Attempt =>
  (client, page, path) =>
    client.send("Page.navigate", { url: urlOf(path) }, page);
const create =
  (urlOf: (path: string) => string): Attempt =>
  (client, _, path) =>
    client.send("Target.createTarget", { url: urlOf(path) });

const attempts: Readonly<Record<string, Attempt>> = {
  "Page.navigate": navigate((path) => `file://${path}`),
  "Page.navigate, odd spelling": navigate((path) => ` fi\nle:/${path}`),
  "Page.navigate to its source": navigate((path) => `view-source:file://${path}`),
  "Page.navigate, host named": navigate((path) => `file://localhost${path}`),
  "Page.navigate, redirected": navigate((path) => `${origin}/?to=${encodeURIComponent(`file://${path}`)}`),
  "Target.createTarget": create((path) => `file://${path}`),
  "Target.createTarget, redirected": create(
    (path) => `${origin}/?to=${encodeURIComponent(`file://${path}`)}`,
  ),
  "Network.loadNetworkResource": async (client, page, path) => {
    await client.send("Page.navigate", { url: origin }, page);
    const { result } = await client.send("Page.getFrameTree", {}, page);
    const frameId = (result?.frameTree as { frame: { id: string } } | undefined)?.frame.id;
    const loaded = await client.send(
      "Network.loadNetworkResource",
      { frameId, url: `file://${path}`, options: { disableCache: true, includeCredentials: true } },
      page,
    );
    const stream = (loaded.result?.resource as { stream?: string } | undefined)?.stream;
    return stream === undefined ? loaded : await client.send("IO.read", { handle: stream }, page);
  },
  "DOM.setFileInputFiles": async (client, page, path) => {
    await client.send("Page.navigate", { url: origin }, page);
    await expect
      .poll(() => client.evaluate("document.querySelector('input') !== null", page), { timeout: 10_000 })
      .toBe(true);
    const { result } = await client.send(
      "Runtime.evaluate",
      { expression: "document.querySelector('input')" },
      page,
    );
    const { objectId = "" } = (result?.result ?? {}) as { objectId?: string };
    const answer = await client.send("DOM.setFileInputFiles", { files: [path], objectId }, page);
    return [
      answer,
      await client.evaluate(limited("return await document.querySelector('input').files[0]?.text()"), page),
    ];
  },
  "Input.dispatchDragEvent": (client, page, path) =>
    client.send(
      "Input.dispatchDragEvent",
      { type: "drop", x: 5, y: 5, data: { items: [], files: [path], dragOperationsMask: 1 } },
      page,
    ),
  "Extensions.loadUnpacked": (client, _, path) => client.send("Extensions.loadUnpacked", { path }),
  "Fetch.fulfillRequest with a redirect": async (client, page, path) => {
    await client.send("Fetch.enable", {}, page);
    const going = client.send("Page.navigate", { url: `${origin}/fulfilled` }, page);
    const { params } = await client.message(({ method }) => method === "Fetch.requestPaused");
    await client.send(
      "Fetch.fulfillRequest",
      {
        requestId: params?.requestId,
        responseCode: 302,
        responseHeaders: [{ name: "location", value: `file://${path}` }],
      },
      page,
    );
    return await going;
  },
  location: inPage(
    (url) =>
      `location.href = ${JSON.stringify(url)}; await new Promise((resolve) => setTimeout(resolve, 200));`,
  ),
  "window.open": inPage(
    (url) => `window.open(${JSON.stringify(url)}); await new Promise((resolve) => setTimeout(resolve, 200));`,
  ),
  fetch: inPage((url) => `return await (await fetch(${JSON.stringify(url)})).text();`),
  XMLHttpRequest: inPage(
    (url) =>
      `return await new Promise((resolve) => { const request = new XMLHttpRequest(); request.onloadend = () => resolve(request.responseText); request.open("GET", ${JSON.stringify(url)}); request.send(); });`,
  ),
  frame: inPage(
    (url) =>
      `const frame = document.createElement("iframe"); frame.src = ${JSON.stringify(url)}; document.body.append(frame); await new Promise((resolve) => setTimeout(resolve, 200)); return frame.contentDocument?.body?.innerText;`,
  ),
  script: inPage((url) => `return await import(${JSON.stringify(url)});`),
  "a world with all access": async (client, page, path) => {
    await client.send("Page.navigate", { url: origin }, page);
    const { result } = await client.send("Page.getFrameTree", {}, page);
    const frameId = (result?.frameTree as { frame: { id: string } } | undefined)?.frame.id;
    const world = await client.send("Page.createIsolatedWorld", { frameId, grantUniveralAccess: true }, page);
    const expression = limited(
      `const request = new XMLHttpRequest(); request.open("GET", "file://${path}", false); request.send(); return request.responseText;`,
    );
    return await client.send(
      "Runtime.evaluate",
      { expression, contextId: world.result?.executionContextId, awaitPromise: true, returnByValue: true },
      page,
    );
  },
  "the developer tools' own page": async (client, _, path) => {
    const { result } = await client.send("Target.createTarget", {
      url: "devtools://devtools/bundled/inspector.html",
    });
    if (result === undefined) return "refused";
    const tools = await client.attach(String(result.targetId));
    await client.send("Runtime.enable", {}, tools);
    const expression = `new Promise((resolve) => {
      let text = "";
      globalThis.DevToolsAPI = { ...globalThis.DevToolsAPI, streamWrite: (_, chunk) => (text += chunk), embedderMessageAck: (_, answer) => resolve(JSON.stringify(answer) + text) };
      globalThis.DevToolsHost?.sendMessageToEmbedder(JSON.stringify({ id: 7, method: "loadNetworkResource", params: ["file://${path}", "", 1] }));
      setTimeout(() => resolve(text), 500);
    })`;
    return await client.evaluate(expression, tools);
  },
};

/** Everything any page shows by now. */
async function shown(client: RawCdp): Promise<string> {
  const { result } = await client.send("Target.getTargets");
  const pages = ((result?.targetInfos ?? []) as { type: string; targetId: string }[]).filter(
    ({ type }) => type === "page" || type === "iframe",
  );
  const texts = await Promise.all(
    pages.map(async ({ targetId }) =>
      client.evaluate("document.documentElement?.outerHTML ?? ''", await client.attach(targetId)),
    ),
  );
  return texts.join("\n");
}

describe.each([{ engine: "headless-shell" }, { engine: "chromium" }])("$engine", ({ engine }) => {
  let session: Lease;
  beforeAll(async () => {
    session = (await daemon.call("POST /browsers", { headless: true, engine, timeout_seconds: 600 }))
      .body as Lease;
  });

  test.each(Object.keys(attempts))(
    "no client reads the keys, a neighbour's profile, Redis or other files of the host: %s",
    async (name) => {
      await Promise.all(
        files.map(async ({ path, words }) => {
          const client = await connectRaw(session.cdp_ws_url);
          const { result } = await client.send("Target.createTarget", { url: "about:blank" });
          const page = await client.attach(String(result?.targetId));
          await client.send("Page.enable", {}, page);
          const given = JSON.stringify(await attempts[name]?.(client, page, path));
          for (const text of [given, await shown(client)]) expect(text.includes(words) && path).toBe(false);
          await client.send("Target.closeTarget", { targetId: result?.targetId });
          await client.close();
        }),
      );
    },
  );

  test("a client reads what lies in the session's own directories", async () => {
    const client = await connectRaw(session.cdp_ws_url);
    const page = await client.attach();
    await client.send("Page.navigate", { url: origin }, page);
    const root = workspaceOf(daemon.place.scratchDirectory, session.session_id);
    const uid = await uidOf(root);
    const own = join(root, "uploads", "own.txt");
    await writeFile(own, "own words");
    await chown(own, uid, uid);
    await expect
      .poll(() => client.evaluate("document.querySelector('input') !== null", page), { timeout: 10_000 })
      .toBe(true);
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
    const page = await client.attach();
    await client.send("Page.navigate", { url: origin }, page);
    await client.evaluate(
      "Object.assign(document.createElement('a'), { href: URL.createObjectURL(new Blob(['x'])), download: 'got.txt' }).click()",
      page,
    );
    const downloads = join(workspaceOf(daemon.place.scratchDirectory, session.session_id), "Downloads");
    await expect.poll(() => readdirSync(downloads), { timeout: 10_000 }).toContain("got.txt");
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
