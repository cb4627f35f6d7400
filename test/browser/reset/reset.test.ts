import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import { TimeLimitReached } from "../../../src/base/deadline.js";
import { Cdp } from "../../../src/browser/cdp/cdp.js";
import type { Chromium, LaunchSpec } from "../../../src/browser/chromium.js";
import {
  differencesBetween,
  type Fingerprint,
  takeFingerprint,
} from "../../../src/browser/reset/fingerprint.js";
import type { BrowserHost } from "../../../src/browser/host.js";
import { findTraces } from "../../../src/browser/reset/origin-traces.js";
import { PipeClient } from "../../support/browser/chromium-client.js";
import { type Dirt, dirt, type Work } from "../../support/browser/chromium-dirt.js";
import { openTestHost } from "../../support/browser/chromium-host.js";
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
    fingerprint = (first) => takeFingerprint({ cdp, directories: chromium.directories }, first);
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
