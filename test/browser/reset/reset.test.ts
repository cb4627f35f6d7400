import { readdir } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import { TimeLimitReached } from "../../../src/base/deadline.js";
import { Cdp } from "../../../src/browser/cdp/cdp.js";
import type { Chromium, LaunchSpec } from "../../../src/browser/chromium.js";
import {
  attachTo,
  differencesBetween,
  type Fingerprint,
  takeFingerprint,
} from "../../../src/browser/reset/fingerprint.js";
import type { BrowserHost } from "../../../src/browser/host.js";
import { findTraces } from "../../../src/browser/reset/origin-traces.js";
import { PipeClient } from "../../support/browser/chromium-client.js";
import { type Dirt, dirt, type Work } from "../../support/browser/chromium-dirt.js";
import { launchSpec, openTestHost } from "../../support/browser/chromium-host.js";
import { engines, kinds } from "../../support/browser/chromium-kinds.js";
import { makeLauncher } from "../../support/browser/chromium-launcher.js";
import { type Site, openSite } from "../../support/browser/chromium-site.js";
import { until } from "../../support/browser/chromium-until.js";

let host: BrowserHost;
let site: Site;
beforeAll(async () => {
  [host, site] = await Promise.all([openTestHost(), openSite()]);
});
const { launch, killAll } = makeLauncher(() => host);
afterAll(async () => {
  await killAll();
  await Promise.all([host.close(), site.close()]);
});

const dirtOf = ({ engine }: Partial<LaunchSpec>): readonly Dirt[] =>
  dirt.filter(({ needsChromium }) => !needsChromium || engine === "chromium");

/** A client that has opened the site in a page of its own. */
async function workIn(chromium: Chromium, client: PipeClient): Promise<Work & { readonly tab: string }> {
  const first = (await client.targets()).find(({ url }) => url === "about:blank");
  const { targetId } = await client.send("Target.createTarget", { url: "about:blank" });
  const session = await client.attach(targetId as string);
  await client.open(`${site.origin}/`, session);
  return { chromium, client, site, session, first: first?.targetId ?? "", tab: targetId as string };
}

describe.each(kinds)("%s after a reset", (_name, given) => {
  const left = new Set<Dirt>();
  let differences: readonly string[];
  let work: Work;
  beforeAll(async () => {
    const chromium = await launch(given);
    const client = new PipeClient(chromium);
    const before = await workIn(chromium, client);
    for (const each of dirtOf(given)) await each.leave(before);
    for (const each of dirtOf(given)) if (await each.find(before)) left.add(each);
    ({ differences } = await chromium.reset(100_000));
    expect((await client.send("Target.getTargets")).targetInfos).toMatchObject([
      { type: "page", url: "about:blank" },
    ]);
    work = await workIn(chromium, client);
  });
  afterAll(killAll);

  test("nothing differs from the fingerprint of the launch", () => expect(differences).toEqual([]));

  test.each(dirtOf(given).map((each) => [each.what, each] as const))("%s is gone", async (_what, each) => {
    expect(left).toContain(each);
    expect(await each.find(work)).toBeFalsy();
  });
});

describe.each(engines)("%s is not clean when a reset has left", (_name, given) => {
  let chromium: Chromium;
  let client: PipeClient;
  let fingerprint: (first: string) => Promise<Fingerprint>;
  let traces: () => Promise<string[]>;
  beforeAll(async () => {
    chromium = await launch(given);
    client = new PipeClient(chromium);
    const cdp = new Cdp(chromium.pipe, systemClock);
    fingerprint = async (first) =>
      await takeFingerprint({ cdp, directories: chromium.directories }, await attachTo(cdp, first));
    traces = () => findTraces(cdp, site.origin);
  });
  afterAll(async () => {
    expect(await chromium.reset(100_000)).toEqual({ differences: [] });
    await killAll();
  });

  const shown = dirtOf(given).filter(({ shownIn }) => shownIn !== undefined);
  test.each(shown.map((each) => [each.what, each] as const))("%s", async (_what, { leave, shownIn }) => {
    const { tab, ...work } = await workIn(chromium, client);
    const before = await fingerprint(work.first);
    await leave(work);
    await client.send("Target.closeTarget", { targetId: tab });
    const more = async (): Promise<string[]> =>
      shownIn === "last origin"
        ? await traces()
        : differencesBetween(before, await fingerprint(work.first)).filter((text) =>
            text.startsWith(`${shownIn}: `),
          );
    await until("a difference", async () => (await more()).length > 0);
  });

  test("nothing, for then nothing differs", async () => {
    const { first } = await workIn(chromium, client);
    // What the page has just loaded may still be on its way into the cache.
    await until(
      "no difference",
      async () => differencesBetween(await fingerprint(first), await fingerprint(first)).length === 0,
    );
  });
});

test.each(kinds)("a reset of %s opens the start url in a fresh page", async (_name, given) => {
  const chromium = await launch({ ...given, startUrl: `${site.origin}/start` });
  const client = new PipeClient(chromium);
  const before = await until("start url", async () =>
    (await client.targets()).find(({ url }) => url === `${site.origin}/start`),
  );
  expect(await chromium.reset(100_000)).toEqual({ differences: [] });
  await until("start url again", async () => (await client.targets())[0]?.url === `${site.origin}/start`);
  expect((await client.targets()).map(({ targetId }) => targetId)).not.toContain(before.targetId);
  await chromium.kill();
});

test.each(kinds)("%s is clean once it has its viewport again", async (_name, given) => {
  const chromium = await launch(given);
  for (const viewport of [{ width: 1600, height: 900 }, launchSpec().viewport])
    await chromium.resize(viewport);
  expect(await chromium.reset(100_000)).toEqual({ differences: [] });
  await chromium.kill();
});

const uncompleted = { differences: ["downloads: one was not completed"] };

describe.each(kinds)("%s with a download", (_name, given) => {
  let chromium: Chromium;
  let client: PipeClient;
  beforeAll(async () => void (client = new PipeClient((chromium = await launch(given)))));
  afterAll(killAll);
  test("that is complete is clean, also where another session wants no word of it", async () => {
    const { session } = await workIn(chromium, client);
    const { sessionId } = await client.send("Target.attachToBrowserTarget");
    const deaf = { behavior: "allow", downloadPath: chromium.directories.downloads, eventsEnabled: false };
    await client.send("Browser.setDownloadBehavior", deaf, sessionId as string);
    await client.download("/file", session);
    await until("its end", () => client.events.some(({ params }) => params?.["state"] === "completed"));
    expect(await chromium.reset(100_000)).toEqual({ differences: [] });
  });

  test("that is under way is not, whatever other sessions want and are told meanwhile", async () => {
    const { session } = await workIn(chromium, client);
    await client.download(`/slow-file?${"x".repeat(20_000)}`, session);
    await until("the download", async () => (await readdir(chromium.directories.downloads)).length > 0);
    const { sessionId } = await client.send("Target.attachToBrowserTarget");
    const deaf = { behavior: "deny", eventsEnabled: false };
    await client.send("Browser.setDownloadBehavior", deaf, sessionId as string);
    await chromium.allowDownloads();
    expect(await chromium.reset(100_000)).toEqual(uncompleted);
  });
});

test.each(engines)("%s with a download in a context of a client's is not clean", async (_name, given) => {
  const chromium = await launch(given);
  const client = new PipeClient(chromium);
  const { browserContextId } = await client.send("Target.createBrowserContext");
  const { downloads: downloadPath } = chromium.directories;
  const { sessionId } = await client.send("Target.attachToBrowserTarget");
  const chosen = { behavior: "allow", downloadPath, browserContextId };
  await client.send("Browser.setDownloadBehavior", chosen, sessionId as string);
  const made = { url: `${site.origin}/own`, browserContextId };
  const session = await client.attach((await client.send("Target.createTarget", made)).targetId as string);
  await client.open(`${site.origin}/own`, session);
  await client.download("/slow-file", session);
  await until("the download", async () => (await readdir(downloadPath)).length > 0);
  expect(await chromium.reset(100_000)).toEqual(uncompleted);
  await chromium.kill();
});

test.each(engines)("%s whose download a server has broken off is not clean", async (_name, given) => {
  const chromium = await launch(given);
  const client = new PipeClient(chromium);
  const { session } = await workIn(chromium, client);
  await client.download("/slow-file", session);
  const response = await until("the download", () => [...site.open][0]);
  response.destroy();
  await until("the end of the answer", () => site.open.size === 0);
  expect(await chromium.reset(100_000)).toEqual(uncompleted);
  await chromium.kill();
});

describe.each(kinds.filter(([, { headless }]) => headless))(
  "%s is not clean when a client has",
  (_name, given) => {
    const screen = { left: 0, top: 2000, width: 800, height: 600, label: "held" };
    test.each([
      ["added a screen", ["Emulation.addScreen", screen]],
      ["changed one", ["Emulation.updateScreen", { label: "held" }]],
    ] as const)("%s", async (_what, [method, params]) => {
      const chromium = await launch(given);
      const client = new PipeClient(chromium);
      const { session } = await workIn(chromium, client);
      const { screenInfos } = await client.send("Emulation.getScreenInfos", {}, session);
      const [{ id: screenId }] = screenInfos as [{ id: string }];
      await client.send(method, method.endsWith("updateScreen") ? { ...params, screenId } : params, session);
      const { differences } = await chromium.reset(100_000);
      expect(differences).toContainEqual(expect.stringMatching(/^screens: \d+ × \d+ at /));
      expect(differences.join()).not.toContain("held");
      await chromium.kill();
    });
  },
);

test("a start page that is slow takes no passkey from whoever has the browser when it comes", async () => {
  const chromium = await launch({ startUrl: `${site.origin}/silent` });
  expect(await chromium.reset(100_000)).toEqual({ differences: [] });
  const disarm = await chromium.armPasskey(undefined);
  await until("the question for the page", () => site.open.size > 0);
  for (const response of site.open) response.end();
  // Its session is left, and lasts as long as the passkey.
  await until("the end of the navigation", () => chromium.pipe.lateDetaches.count === 1, 20_000);
  await disarm();
  await chromium.kill();
});

test("a browser that was launched for one holder is no browser for a second: a reset says so", async () => {
  const chromium = await launch({ isForOne: true });
  expect((await chromium.reset(100_000)).differences).toEqual([expect.stringContaining("fingerprint: none")]);
});

test("a browser is reset before its first page has come to rest", async () => {
  const chromium = await launch({ engine: "chromium" });
  const client = new PipeClient(chromium);
  const { session } = await workIn(chromium, client);
  await client.evaluate("fetch('/cached').then((answer) => answer.text())", session);
  expect(await chromium.reset(100_000)).toEqual({ differences: [] });
  await chromium.kill();
});

test("a client that opens pages as fast as they are closed cannot make a reset pass", async () => {
  const chromium = await launch({});
  const client = new PipeClient(chromium);
  const over = new AbortController();
  const opening = (async () => {
    while (!over.signal.aborted) await client.send("Target.createTarget", { url: site.origin });
  })();
  // The pages may leave a busy machine no time for the reset's own: then it fails, which ends the browser
  // too.
  const found = await chromium.reset(100_000).then(
    ({ differences }) => differences,
    (error: unknown) => {
      if (!(error instanceof TimeLimitReached)) throw error;
      return [`targets: ${error.message}`];
    },
  );
  expect(found.some((text) => text.startsWith("targets: "))).toBe(true);
  over.abort();
  await opening;
  await chromium.kill();
});
