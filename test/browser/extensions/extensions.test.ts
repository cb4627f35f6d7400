import { once } from "node:events";
import { appendFile } from "node:fs/promises";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { LaunchFailed } from "../../../src/browser/launch-attempt.js";
import type { Chromium, ExtensionDirectory } from "../../../src/browser/chromium.js";
import type { BrowserHost } from "../../../src/browser/host.js";
import { launchChromium } from "../../support/browser/launch-chromium.js";
import { nothing, takeCensus } from "../../support/browser/chromium-census.js";
import { PipeClient, type Target } from "../../support/browser/chromium-client.js";
import { launchSpec, openTestHost } from "../../support/browser/chromium-host.js";
import { engines } from "../../support/browser/chromium-kinds.js";
import { makeLauncher } from "../../support/browser/chromium-launcher.js";
import { openSite, type Site } from "../../support/browser/chromium-site.js";
import { until } from "../../support/browser/chromium-until.js";
import {
  marks,
  nextRoom,
  writeBrokenExtension,
  writeExtension,
  writeInto,
  writeRules,
} from "../../support/archive/extension-files.js";

let host: BrowserHost;
let site: Site;
const { launch, killAll } = makeLauncher(() => host);
beforeAll(async () => {
  [host, site] = await Promise.all([openTestHost(), openSite()]);
});
afterEach(killAll);
afterAll(async () => {
  expect(await takeCensus(host.scratchDirectory, new Set())).toEqual(nothing);
  await Promise.all([host.close(), site.close()]);
});

const limitMs = 100_000;
const withExtensions = engines.filter(([, { engine }]) => engine === "chromium");
const startingWith = (...names: readonly string[]) => ({
  fillWorkspace: ({ directories }: { directories: Chromium["directories"] }) =>
    Promise.all(names.map((name) => writeExtension(directories.extensions, name))),
});
const write = (chromium: Chromium, name: string): Promise<ExtensionDirectory> =>
  writeInto(nextRoom(chromium), name);

/** All that a client can see of a browser's extensions and targets. */
async function seenBy(client: PipeClient): Promise<object> {
  const [{ extensions }, { targetInfos }] = await Promise.all([
    client.send("Extensions.getExtensions"),
    client.send("Target.getTargets"),
  ]);
  return {
    extensions,
    targets: (targetInfos as Target[])
      .map(({ targetId, type, url }) => `${type} ${targetId} ${url}`)
      .toSorted(),
  };
}

/** A site whose answers wait until they are let go. */
async function openSlowSite(): Promise<{ server: Server; url: string; asked: Promise<ServerResponse> }> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const asked = once(server, "request").then(([, response]) => response as ServerResponse);
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/slow`, asked };
}

describe.each(withExtensions)("in %s", (_, given) => {
  test("extensions given at the launch act on the first page opened, in every context", async () => {
    const chromium = await launch({ ...given, ...startingWith("first", "second") });
    expect(chromium.extensions.map(({ name }) => name)).toEqual(["first", "second"]);
    const client = new PipeClient(chromium);
    const session = await client.attach();
    await client.open(`${site.origin}/`, session);
    expect(await client.evaluate(marks, session)).toBe("first,second");
    const { browserContextId } = await client.send("Target.createBrowserContext");
    const { targetId } = await client.send("Target.createTarget", { url: "about:blank", browserContextId });
    const other = await client.attach(targetId as string);
    await client.open(`${site.origin}/`, other);
    expect(await client.evaluate(marks, other)).toBe("first,second");
  });

  test.each(["at the launch", "live"])(
    "an extension's own rules of what is stopped are in force, loaded %s",
    async (when) => {
      const fillWorkspace = async ({ directories }: { directories: Chromium["directories"] }) => [
        await writeRules(join(directories.extensions, "rules"), "rules"),
      ];
      const chromium = await launch({ ...given, ...(when === "live" ? {} : { fillWorkspace }) });
      if (when === "live")
        expect(await chromium.load([await writeRules(nextRoom(chromium), "rules")], limitMs)).toEqual({
          kind: "loaded",
        });
      const client = new PipeClient(chromium);
      const session = await client.attach();
      await client.open(`${site.origin}/`, session);
      const asked = (path: string): Promise<unknown> =>
        client.evaluate(`fetch("${site.origin}/${path}").then(() => "came", () => "stopped")`, session);
      expect([await asked("ad"), await asked("news")]).toEqual(["stopped", "came"]);
    },
  );

  test("an extension loaded while two clients are connected and a page is on its way acts on the next page, and disturbs none", async () => {
    const chromium = await launch(given);
    const [one, two] = [new PipeClient(chromium), new PipeClient(chromium, 10_000)];
    const standing = await one.attach();
    await one.open(`${site.origin}/standing`, standing);
    await one.evaluate("globalThis.held = 1", standing);
    const { targetId } = await two.send("Target.createTarget", { url: "about:blank" });
    const moving = await two.attach(targetId as string);
    const slow = await openSlowSite();
    const arriving = two.send("Page.navigate", { url: slow.url }, moving);
    const response = await slow.asked;

    expect(await chromium.load([await write(chromium, "live")], limitMs)).toEqual({ kind: "loaded" });

    // Whether it has the script is not said: Chromium delays only what sets out later
    // (docs/chromium.md#extensions).
    response.setHeader("content-type", "text/html").end("<title>arrived</title>");
    expect(await arriving).not.toHaveProperty("errorText");
    await until(
      "the page on its way",
      async () => (await two.evaluate("document.title", moving)) === "arrived",
    );
    expect(await one.evaluate("globalThis.held + location.href", standing)).toBe(`1${site.origin}/standing`);
    expect(await one.evaluate(marks, standing)).toBe("");
    for (const [client, session] of [
      [one, standing],
      [two, moving],
    ] as const) {
      await client.open(`${site.origin}/next`, session);
      expect(await client.evaluate(marks, session)).toBe("live");
    }
    expect(
      [...one.events, ...two.events].filter(({ method }) => method === "Target.detachedFromTarget"),
    ).toEqual([]);
    slow.server.close();
  });

  test("a page that is opened as soon as extensions are loaded waits for their scripts, however long they are", async () => {
    const chromium = await launch(given);
    const client = new PipeClient(chromium);
    const session = await client.attach();
    const loaded = [await write(chromium, "short"), await write(chromium, "long")];
    await appendFile(join(loaded[1]?.path ?? "", "content.js"), `;"${"x".repeat(20 * 2 ** 20)}";`);
    expect(await chromium.load(loaded, limitMs)).toEqual({ kind: "loaded" });
    await client.open(`${site.origin}/`, session);
    expect(await client.evaluate(marks, session)).toBe("long,short");
  });

  test.each([1, 5, 20])(
    "of %i extensions the last is broken: Chromium says why, and the browser is as it was",
    async (count) => {
      const chromium = await launch({ ...given, ...startingWith("kept") });
      const client = new PipeClient(chromium);
      const worker = await until(
        "the worker of the kept one",
        async () => (await client.targets("service_worker"))[0],
      );
      // Chromium ends a worker that has had nothing to do for 30 s, unless somebody is attached to it.
      await client.attach(worker.targetId);
      const before = await seenBy(client);
      const writeWhole = () =>
        Promise.all(Array.from({ length: count - 1 }, (__, at) => write(chromium, `whole-${at}`)));
      const whole = await writeWhole();
      const broken = await writeInto(nextRoom(chromium), "broken", { version: undefined });

      expect(await chromium.load([...whole, broken], limitMs)).toEqual({
        kind: "refused",
        name: "broken",
        message: expect.stringContaining("'version'"),
      });

      await expect.poll(() => seenBy(client)).toEqual(before);
      expect(chromium.extensions.map(({ name }) => name)).toEqual(["kept"]);
      const session = await client.attach();
      await client.open(`${site.origin}/`, session);
      expect(await client.evaluate(marks, session)).toBe("kept");
      // Tried again without the broken one: where they were they could read files now.
      if (count > 1) expect(await chromium.load(whole, limitMs)).toMatchObject({ kind: "needs-restart" });
      expect(await chromium.load(await writeWhole(), limitMs)).toEqual({ kind: "loaded" });
      expect(chromium.extensions).toHaveLength(count);
    },
  );

  test("an extension that has the key of another is refused, and the other one goes on", async () => {
    const key =
      "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAn3bTzrMfmzmpHnLYGgDYBGPiGaprCZeLbhYWwUwVtVSc8gSTpYFTUA1YYJGWLRIH2RuqUS8Gm8Wc3gFVGZmAkrVzKP0mFqmCKkTPVMVgYPTj1lWKlDSdAcpWhRAiGSLExUrQcOe5VhKJ2L4hVsbEJsVwbSuwDjaTUjGJtNRsUdzPDjdMWFrFfiTmsxSHJlrHLEOGtBpxXpOCmHHYvOTlvMKlCNLQXFpUjLxBGFGFTXaVEPGnMTcMM2XbWCMhcpIzLGqLIGJYAvKzaKLtHdTIjDCzIFVSXtYwmqRZTGlzNSbbJBhPQNQwmbzELZxCIcNhkXPJbmzPSgRYvRXcPQIDAQAB";
    const fillWorkspace = async ({ directories }: Pick<Chromium, "directories">) => [
      await writeExtension(directories.extensions, "first", { key }),
    ];
    const chromium = await launch({ ...given, fillWorkspace });
    const client = new PipeClient(chromium);
    const second = await writeInto(nextRoom(chromium), "second", { key });
    expect(await chromium.load([second], limitMs)).toMatchObject({
      kind: "refused",
      name: "second",
      message: expect.stringContaining("same key"),
    });
    const session = await client.attach();
    await client.open(`${site.origin}/`, session);
    expect(await client.evaluate(marks, session)).toBe("first");
  });

  test("no answer within the limit asks for a restart, and what was begun is taken back", async () => {
    const chromium = await launch(given);
    const client = new PipeClient(chromium);
    const before = await seenBy(client);
    const late = await Promise.all(["a", "b", "c"].map((name) => write(chromium, name)));
    expect(await chromium.load(late, 2)).toMatchObject({ kind: "needs-restart" });
    await until(
      "all taken back",
      async () => JSON.stringify(await seenBy(client)) === JSON.stringify(before),
    );
    expect(chromium.extensions).toEqual([]);
  });

  test("one with a key of its own asks for a restart, for its id was not known at the start", async () => {
    const chromium = await launch(given);
    for (const key of ["bm90IGEga2V5", "no base64"]) {
      const loading = await chromium.load([await writeInto(nextRoom(chromium), "keyed", { key })], limitMs);
      expect(loading).toMatchObject(key === "no base64" ? { kind: "refused" } : { kind: "needs-restart" });
    }
    expect(chromium.extensions).toEqual([]);
  });

  test("a reset takes away later extensions, and of a browser that was launched with some nothing stays", async () => {
    const chromium = await launch(given);
    const client = new PipeClient(chromium);
    expect(await chromium.load([await write(chromium, "later")], limitMs)).toEqual({ kind: "loaded" });
    // One that is taken out while its worker starts leaves a target that nobody can close; such a browser
    // differs.
    await until("its worker running", async () => {
      const [worker] = await client.targets("service_worker");
      return (
        worker && (await client.evaluate("1", await client.attach(worker.targetId)).catch(() => 0)) === 1
      );
    });
    expect(await chromium.reset(limitMs)).toEqual({ differences: [] });
    expect(chromium.extensions).toEqual([]);
    const launched = await launch({ ...given, ...startingWith("given") });
    expect(await launched.reset(limitMs)).toEqual({
      differences: ["extensions: they cannot be loaded anew"],
    });
  });

  test("an extension that Chromium refuses fails the launch with Chromium's words, and nothing is left", async () => {
    const fillWorkspace = async ({ directories }: Pick<Chromium, "directories">) => [
      await writeBrokenExtension(directories.extensions, "broken"),
    ];
    const error: unknown = await launchChromium(launchSpec({ ...given, fillWorkspace }), host).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(LaunchFailed);
    expect(error).toMatchObject({
      stage: "extensions",
      message: expect.stringContaining("broken: Required value 'version' is missing"),
    });
    expect(await takeCensus(host.scratchDirectory, new Set())).toEqual(nothing);
  });
});

test("headless-shell has no extensions, and a launch with some fails", async () => {
  const failing = launchChromium(launchSpec({ engine: "headless-shell", ...startingWith("any") }), host);
  await expect(failing).rejects.toMatchObject({ stage: "extensions" });
  const chromium = await launch({ engine: "headless-shell" });
  expect(await chromium.load([await write(chromium, "any")], limitMs)).toMatchObject({
    kind: "refused",
    name: "any",
  });
  await chromium.kill();
});
