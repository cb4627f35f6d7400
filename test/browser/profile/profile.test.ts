import { rm } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Chromium, KeptWorkspace } from "../../../src/browser/chromium.js";
import type { FillWorkspace } from "../../../src/node/browser-assets.js";
import type { BrowserHost } from "../../../src/browser/host.js";
import { type FilledSpec, launchChromium } from "../../support/browser/launch-chromium.js";
import { packProfile } from "../../../src/browser/profile/pack-profile.js";
import { unpackProfile } from "../../../src/browser/profile/unpack-profile.js";
import { nothing, takeCensus } from "../../support/browser/chromium-census.js";
import { PipeClient } from "../../support/browser/chromium-client.js";
import { launchSpec, openTestHost } from "../../support/browser/chromium-host.js";
import { engines } from "../../support/browser/chromium-kinds.js";
import { writeExtension } from "../../support/archive/extension-files.js";
import { type LoginSite, lookAround, moveIn, openLoginSite } from "../../support/browser/sites/login-site.js";
import { namesIn, tarOf } from "../../support/archive/tar-bytes.js";

let host: BrowserHost;
let site: LoginSite;
const started: Chromium[] = [];
const kept: KeptWorkspace[] = [];
beforeAll(async () => {
  [host, site] = await Promise.all([openTestHost(), openLoginSite()]);
});
afterEach(async () => {
  await Promise.all(started.splice(0).map((chromium) => chromium.kill()));
  await Promise.all(kept.splice(0).map((keptWorkspace) => keptWorkspace.discard()));
});
afterAll(async () => {
  expect(await takeCensus(host.scratchDirectory, new Set())).toEqual(nothing);
  await Promise.all([host.close(), site.close()]);
});

const limitMs = 100_000;
const limits = { maxBytes: 2 ** 30, maxFiles: 10_000 };
const from =
  (tar: Buffer): FillWorkspace =>
  async (room) => {
    await unpackProfile(Readable.from([tar]), room, limits);
    return [];
  };

async function start(spec: FilledSpec): Promise<Chromium> {
  const chromium = await launchChromium(spec, host);
  started.push(chromium);
  return chromium;
}

async function open(chromium: Chromium, path: string): Promise<{ client: PipeClient; session: string }> {
  const client = new PipeClient(chromium);
  const session = await client.attach();
  await client.open(`${site.origin}${path}`, session);
  return { client, session };
}

async function leave(chromium: Chromium): Promise<KeptWorkspace> {
  const keptWorkspace = await chromium.stopAndKeep(limitMs);
  kept.push(keptWorkspace);
  return keptWorkspace;
}

/** The profile of somebody who has logged in and moved in. */
async function livedIn(spec: FilledSpec): Promise<{ tar: Buffer; uid: number | null }> {
  const chromium = await start(spec);
  const { client, session } = await open(chromium, "/login");
  await client.evaluate(moveIn, session);
  const keptWorkspace = await leave(chromium);
  return { tar: await buffer(packProfile(keptWorkspace, limits)), uid: keptWorkspace.uid };
}

describe.each(engines)("%s", (_, given) => {
  test("a profile that was packed is logged in when another browser, as another uid, starts from it", async () => {
    const { tar, uid } = await livedIn(launchSpec(given));
    const second = await start(launchSpec({ ...given, fillWorkspace: from(tar) }));
    if (uid !== null) expect(second.isolation.uid).not.toBe(uid);
    expect(await new PipeClient(second).targets()).toMatchObject([{ url: "about:blank" }]);
    const { client, session } = await open(second, "/");
    expect(await client.evaluate(lookAround, session)).toBe("welcome back, stored, kept");
    await second.close(limitMs);
  });

  test("a login for as long as the browser ran is in the packed profile too", async () => {
    const first = await start(launchSpec(given));
    await open(first, "/login-for-now");
    const tar = await buffer(packProfile(await leave(first), limits));
    const second = await start(launchSpec({ ...given, fillWorkspace: from(tar) }));
    const { client, session } = await open(second, "/");
    expect(await client.evaluate("document.title", session)).toBe("welcome back");
  });

  test("a login is in it also where Chromium's process ended before its cookies were written down", async () => {
    const first = await start(launchSpec(given));
    await open(first, "/login");
    const keptWorkspace = await leave(first);
    await Promise.all(
      ["Cookies", "Cookies-journal"].map((name) =>
        rm(join(keptWorkspace.directories.profile, "Default", name), { force: true }),
      ),
    );
    const tar = await buffer(packProfile(keptWorkspace, limits));
    const second = await start(launchSpec({ ...given, fillWorkspace: from(tar) }));
    const { client, session } = await open(second, "/");
    expect(await client.evaluate("document.title", session)).toBe("welcome back");
    const { cookies } = (await client.send("Storage.getCookies")) as {
      cookies: { expires: number; session: boolean }[];
    };
    expect(cookies).toMatchObject([{ session: false }]);
    expect(cookies[0]?.expires).toBeGreaterThan(Date.now() / 1000);
  });

  test("caches, locks and what else is no state are left out, and it is small", async () => {
    const { tar } = await livedIn(launchSpec(given));
    const names = await namesIn(tar);
    expect(names).toEqual(
      expect.arrayContaining([
        "Default/Cookies",
        expect.stringMatching(/Local Storage\/leveldb\/.+log$/),
        expect.stringMatching(/CacheStorage/),
      ]),
    );
    const parts = new Set(names.flatMap((name) => name.split("/")));
    for (const left of [
      "Cache",
      "Code Cache",
      "GPUCache",
      "DawnGraphiteCache",
      "SingletonLock",
      "LOCK",
      "Sessions",
      "Crashpad",
    ])
      expect(parts).not.toContain(left);
    expect(tar.length).toBeLessThan(1_500_000);
  });
});

test("a site that works offline does so from the packed profile", async () => {
  const own = await openLoginSite();
  const first = await start(launchSpec({ engine: "chromium" }));
  const client = new PipeClient(first);
  const session = await client.attach();
  await client.open(`${own.origin}/`, session);
  await client.evaluate(moveIn, session);
  const tar = await buffer(packProfile(await leave(first), limits));
  own.goOffline();
  const second = await start(launchSpec({ engine: "chromium", fillWorkspace: from(tar) }));
  const later = new PipeClient(second);
  const again = await later.attach();
  await later.open(`${own.origin}/`, again);
  expect(await later.evaluate("document.title", again)).toBe("from the cache");
  await own.close();
});

test("the start URL is opened, and no extension of the browser that was packed comes along", async () => {
  const fillWorkspace: FillWorkspace = async ({ directories }) => [
    await writeExtension(directories.extensions, "theirs"),
  ];
  const { tar } = await livedIn(launchSpec({ engine: "chromium", headless: false, fillWorkspace }));
  const second = await start(
    launchSpec({
      engine: "chromium",
      headless: false,
      fillWorkspace: from(tar),
      startUrl: `${site.origin}/start`,
    }),
  );
  const client = new PipeClient(second);
  await expect
    .poll(async () => (await client.targets()).map(({ url }) => url))
    .toEqual([`${site.origin}/start`]);
  expect(await client.send("Extensions.getExtensions")).toEqual({ extensions: [] });
});

test("experiments of a profile become no switches", async () => {
  const tampered = JSON.stringify({ browser: { enabled_labs_experiments: ["enable-quic@1"] } });
  const chromium = await start(
    launchSpec({
      engine: "chromium",
      headless: true,
      fillWorkspace: from(await tarOf({ name: "Local State", body: tampered })),
    }),
  );
  const { commandLine } = await new PipeClient(chromium).send("SystemInfo.getInfo");
  expect(commandLine).toContain("--remote-debugging-pipe");
  expect(commandLine).not.toContain("--enable-quic");
});
