import { readdirSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import Kernel, { toFile } from "@onkernel/sdk";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findExecutable } from "../../../src/browser/executable.js";
import { workspaceOf } from "../../support/browser/browser-processes.js";
import { until } from "../../support/browser/chromium-until.js";
import { type Daemon, type Lease, startDaemon } from "../../support/daemon/daemon.js";
import { packExtension } from "../../support/archive/packed-extension.js";
import { connectRaw, type RawCdp } from "../../support/gateway/raw-cdp.js";
import { extensionZip, type ZipPart, zipBytes } from "../../support/archive/zip-bytes.js";

/** Pages whose title is `plain`; `/slow` is held back until it is let go. */
class Site {
  readonly #held: ServerResponse[] = [];
  private constructor(private readonly server: Server) {}

  static async open(): Promise<Site> {
    const server = createServer((request, response) => {
      response.setHeader("content-type", "text/html");
      if (request.url === "/slow") site.#held.push(response);
      else response.end("<!doctype html><title>plain</title>");
    });
    const site = new Site(server);
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
    return site;
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }
  get heldCount(): number {
    return this.#held.length;
  }
  letGo(): void {
    for (const response of this.#held.splice(0)) response.end("<!doctype html><title>plain</title>");
  }
  close(): void {
    this.server.closeAllConnections();
    this.server.close();
  }
}

let daemon: Daemon;
let site: Site;
let kernel: Kernel;
beforeAll(async () => {
  [daemon, site] = await Promise.all([
    startDaemon({ file: { browser: { engine: "chromium" } } }),
    Site.open(),
  ]);
  kernel = daemon.kernel({ maxRetries: 0 });
});
afterAll(async () => {
  site.close();
  await daemon.stop();
});

const created = async (body: object = {}): Promise<Lease> =>
  (
    await daemon.call("POST /browsers", {
      headless: true,
      timeout_seconds: 600,
      viewport: { width: 800, height: 600 },
      ...body,
    })
  ).body as Lease;
const end = (lease: Lease) => daemon.call(`DELETE /browsers/${lease.session_id}`);

/** Puts its word into the titles of pages. */
const titling = (word: string, more: object = {}): Buffer =>
  extensionZip(
    [{ name: "title.js", content: `document.title = ${JSON.stringify(word)} + " " + document.title` }],
    { content_scripts: [{ matches: ["<all_urls>"], js: ["title.js"], run_at: "document_end" }], ...more },
  );
async function upload(
  { session_id }: Lease,
  items: readonly (readonly [name: string, zip: Buffer])[],
): Promise<void> {
  const extensions = await Promise.all(
    items.map(async ([name, zip]) => ({ name, zip_file: await toFile(zip, `${name}.zip`) })),
  );
  await kernel.browsers.loadExtensions(session_id, { extensions });
}

async function titleAt(client: RawCdp, page: string, path: string): Promise<unknown> {
  await client.send("Page.navigate", { url: site.origin + path }, page);
  return await until(
    `${path} loaded`,
    async () =>
      (await client.evaluate("document.readyState === 'complete' && location.pathname", page)) === path &&
      (await client.evaluate("document.title", page)),
  );
}
/** What a client can see of the extensions, and what lies on the disk. */
async function stateOf(lease: Lease, client: RawCdp): Promise<unknown> {
  const { result } = await client.send("Extensions.getExtensions");
  const targets = (await client.send("Target.getTargets")).result?.targetInfos as {
    type: string;
    url: string;
  }[];
  const files = readdirSync(
    join(workspaceOf(daemon.place.scratchDirectory, lease.session_id), "extensions"),
  ).toSorted();
  return {
    extensions: result?.extensions,
    targets: targets.map(({ type, url }) => `${type} ${url}`).toSorted(),
    files,
  };
}

test.each([true, false])(
  "headless %s: an upload with two clients connected and a page on its way drops nobody and acts on the next page",
  async (headless) => {
    const lease = await created({ headless });
    const [one, other] = await Promise.all([connectRaw(lease.cdp_ws_url), connectRaw(lease.cdp_ws_url)]);
    const [page, same] = await Promise.all([one.attach(), other.attach()]);
    await one.send("Page.enable", {}, page);
    const navigating = one.send("Page.navigate", { url: `${site.origin}/slow` }, page);
    await until("the request", () => site.heldCount === 1);
    await upload(lease, [
      ["first", titling("first")],
      ["second", titling("second")],
    ]);
    site.letGo();
    expect((await navigating).error).toBeUndefined();
    await one.message(({ method }) => method === "Page.loadEventFired");
    // Chromium chooses which of them comes first.
    expect(await titleAt(other, same, "/next")).toMatch(/^(second first|first second) plain$/);
    expect([one.socket.readyState, other.socket.readyState]).toEqual([1, 1]);
    expect(await one.evaluate("document.title", page)).toMatch(/^(second first|first second) plain$/);
    await end(lease);
  },
);

/** Two with one key are one to Chromium; nothing before it can tell. */
const key =
  "MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDcBHwzDvyBQ6bDppkIs9MP4ksKqCMyXQ/A52JivHZKh4YO/9vJsT3oaYhSpDCE9RPocOEQvwsHsFReW2nUEc6OLLyoCFFxIb7KkLGsmfakkut/fFdNJYh0xOTbSN8YvLWcqph09XAY2Y/f0AL7vfO1cuCqtkMt8hFrBGWxDdf9CQIDAQAB";
const unmanaged: ZipPart[] = [{ name: "manifest.json", content: "{" }];
test.each([1, 5, 20])(
  "of %i uploads the last is broken: the browser is exactly as before",
  async (total) => {
    const lease = await created();
    const room = total === 20 ? [] : ([["there", titling("there", { key })]] as const);
    if (room.length > 0) await upload(lease, room);
    const client = await connectRaw(lease.cdp_ws_url);
    const page = await client.attach();
    await titleAt(client, page, "/before");
    const before = await stateOf(lease, client);
    const good = Array.from(
      { length: total - 1 },
      (_, index) =>
        [`good-${index}`, titling(`good-${index}`, total === 20 && index === 0 ? { key } : {})] as const,
    );
    await expect(upload(lease, [...good, ["last", titling("last", { key })]])).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining("last"),
    });
    await expect(upload(lease, [...good, ["last", zipBytes(unmanaged)]])).rejects.toMatchObject({
      status: 400,
      error: { details: [{ message: expect.stringContaining("last") }] },
    });
    await expect.poll(() => stateOf(lease, client)).toEqual(before);
    expect(await titleAt(client, page, "/after")).toBe(room.length > 0 ? "there plain" : "plain");
    expect(client.socket.readyState).toBe(1);
    // The names are free again.
    await upload(lease, [["good-0", titling("again")]]);
    expect(await titleAt(client, page, "/again")).toContain("again");
    await end(lease);
  },
  180_000,
);

/** Every file of the directory, as a zip. */
async function zipOf(directory: string): Promise<Buffer> {
  const names = await readdir(directory);
  return zipBytes(
    await Promise.all(names.map(async (name) => ({ name, content: await readFile(join(directory, name)) }))),
  );
}

test("one that demands policy: a restart, clients told why, and the URL, the login and the other extensions are there after it", async () => {
  const packed = await packExtension({ chromium: (await findExecutable("chromium")) ?? "" });
  const lease = await created();
  await upload(lease, [["titling", titling("kept")]]);
  const client = await connectRaw(lease.cdp_ws_url);
  const page = await client.attach();
  await titleAt(client, page, "/before");
  await client.evaluate("document.cookie = 'kept=yes; max-age=3600'", page);
  const { body: before } = await daemon.call(`GET /browsers/${lease.session_id}`);
  await upload(lease, [["stops", await zipOf(packed.path)]]);
  await packed.remove();
  expect(await client.closed).toEqual({ code: 1012, reason: expect.stringContaining("stops") });
  const { body: after } = await daemon.call(`GET /browsers/${lease.session_id}`);
  expect([after.session_id, after.cdp_ws_url]).toEqual([before.session_id, before.cdp_ws_url]);
  const again = await connectRaw(lease.cdp_ws_url);
  const next = await again.attach();
  expect(await titleAt(again, next, "/after")).toContain("kept");
  expect(await again.evaluate("document.cookie", next)).toBe("kept=yes");
  await until(
    "the packed one",
    async () =>
      (await again.evaluate("document.documentElement.getAttribute('data-packed')", next)) === "here",
  );
  await end(lease);
});

test("a pool that resets state loses the browser that was given one, and one that does not hands it on", async () => {
  for (const [reset, isSame] of [
    ["state", false],
    ["none", true],
  ] as const) {
    await daemon.makePool({ name: `resets-${reset}`, reset_on_release: reset });
    const acquire = async (): Promise<Lease> =>
      (await daemon.call(`POST /browser_pools/resets-${reset}/acquire`, { acquire_timeout_seconds: 50 }))
        .body as Lease;
    const first = await acquire();
    await upload(first, [["titling", titling("given")]]);
    await daemon.call(`POST /browser_pools/resets-${reset}/release`, { session_id: first.session_id });
    const next = await acquire();
    expect(next.session_id === first.session_id).toBe(isSame);
    const client = await connectRaw(next.cdp_ws_url);
    expect(await titleAt(client, await client.attach(), "/")).toBe(isSame ? "given plain" : "plain");
    await client.close();
  }
});
