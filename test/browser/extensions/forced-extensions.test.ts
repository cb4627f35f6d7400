import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import type { Chromium, LaunchSpec, StartDirectories } from "../../../src/browser/chromium.js";
import { findForced } from "../../../src/browser/extensions/forced-extensions.js";
import type { BrowserHost } from "../../../src/browser/host.js";
import type { LaunchStage } from "../../../src/browser/launch-attempt.js";
import { launchChromium } from "../../support/browser/launch-chromium.js";
import { localRules, openTestEgress, type TestEgress, tiers } from "../../support/browser/browser-egress.js";
import { nothing, takeCensus } from "../../support/browser/chromium-census.js";
import { PipeClient } from "../../support/browser/chromium-client.js";
import { launchSpec, openTestHost } from "../../support/browser/chromium-host.js";
import { withoutPrivateRoot } from "../../support/browser/rungs.js";
import { makeLauncher } from "../../support/browser/chromium-launcher.js";
import { openSite, type Site } from "../../support/browser/chromium-site.js";
import { until } from "../../support/browser/chromium-until.js";
import { marks, writeExtension } from "../../support/archive/extension-files.js";
import { packExtension, placeExtension } from "../../support/archive/packed-extension.js";

let host: BrowserHost;
let site: Site;
let packed: { path: string; remove(): Promise<void> };
const opened: TestEgress[] = [];
const { launch, killAll } = makeLauncher(() => host);
beforeAll(async () => {
  [host, site] = await Promise.all([openTestHost(), openSite()]);
  packed = await packExtension({ chromium: chromium() });
});
afterEach(async () => {
  await killAll();
  await Promise.all(opened.splice(0).map(({ egress }) => egress.close()));
  expect(await takeCensus(host.scratchDirectory, new Set())).toEqual(nothing);
});
afterAll(() => Promise.all([host.close(), site.close(), packed.remove()]));

const chromium = (): string => host.executables.chromium ?? "";
const limitMs = 100_000;
const modes = [
  ["headless", true],
  ["headful", false],
] as const;
const given = (headless: boolean): Pick<LaunchSpec, "engine" | "headless"> => ({
  engine: "chromium",
  headless,
});
const both = async ({ directories: { extensions } }: StartDirectories) => [
  await writeExtension(extensions, "plain"),
  await placeExtension(extensions, "stops", packed.path),
];
const alone =
  (path: string) =>
  async ({ directories: { extensions } }: StartDirectories) => [
    await placeExtension(extensions, "stops", path),
  ];

/** What a page finds: whose content scripts ran, and what became of a request that the extension stops. */
async function effectIn(
  browser: Chromium,
  mayStop = true,
): Promise<{ client: PipeClient; session: string; marked: unknown; stopped: string | undefined }> {
  const client = new PipeClient(browser);
  const session = await client.attach();
  await client.open(`${site.origin}/`, session);
  const marked = await client.evaluate(marks, session);
  const ask = (): Promise<unknown> =>
    client.evaluate("fetch('/stopped').then(() => 'reached', String)", session);
  // Its worker runs, and may not have come to its listener yet.
  const stopped = mayStop
    ? await until("the request to be stopped", async () => {
        const found = await ask();
        return found !== "reached" && found;
      })
    : await ask();
  return { client, session, marked, stopped: stopped as string };
}

describe.each(modes)("%s", (_, headless) => {
  test("an extension that may stop requests by policy alone acts from the first page on, beside one loaded unpacked", async () => {
    site.requests.splice(0);
    const browser = await launch({ ...given(headless), fillWorkspace: both });
    expect(browser.extensions.map(({ name }) => name)).toEqual(["plain", "stops"]);
    const { client, session, ...effect } = await effectIn(browser);
    expect(effect).toEqual({ marked: "packed,plain", stopped: "TypeError: Failed to fetch" });
    site.requests.splice(0);
    expect(await client.evaluate("fetch('/stopped').then(() => 'reached', String)", session)).toBe(
      "TypeError: Failed to fetch",
    );
    // A window asks for the page's icon, whenever it comes to that.
    expect(site.requests.filter((path) => path !== "/favicon.ico")).toEqual([]);
    // What no extension is given, it does not get by asking either.
    const click = { x: 5, y: 5, button: "left", clickCount: 1 };
    // A click on a page that has not been painted yet is lost.
    const answer = await until("the answer", async () => {
      for (const type of ["mousePressed", "mouseReleased"])
        await client.send("Input.dispatchMouseEvent", { ...click, type }, session);
      return await client.evaluate("document.documentElement.dataset.asked", session);
    });
    const blocked = "Error: Permissions are blocked by enterprise policy.";
    expect(answer).toBe(`true, ${blocked}, ${blocked}`);
    expect(await browser.reset(limitMs)).toEqual({ differences: ["extensions: one is installed by policy"] });
  });

  test("given to a running browser it changes nothing until a restart, and stays through the next", async () => {
    const spec = launchSpec(given(headless));
    const first = await launch(spec);
    const added = await placeExtension(first.directories.extensions, "stops", packed.path);
    expect(await first.load([added], limitMs)).toEqual({
      kind: "needs-restart",
      why: "the extension stops has to be installed by policy",
    });
    expect(first.extensions).toEqual([]);
    expect((await effectIn(first, false)).stopped).toBe("reached");
    site.requests.splice(0);

    const keptWorkspace = await first.stopAndKeep(limitMs);
    const second = await launchChromium({ ...spec, fillWorkspace: async () => [added] }, host, {
      adopt: keptWorkspace,
    });
    expect(await effectIn(second)).toMatchObject({ marked: "packed", stopped: "TypeError: Failed to fetch" });
    const again = await second.stopAndKeep(limitMs);
    expect(again.extensions).toEqual([added]);
    const third = await launchChromium({ ...spec, fillWorkspace: async () => again.extensions }, host, {
      adopt: again,
    });
    expect(await effectIn(third)).toMatchObject({ marked: "packed", stopped: "TypeError: Failed to fetch" });
    const without = await third.stopAndKeep(limitMs);
    const fourth = await launchChromium({ ...spec, fillWorkspace: async () => [] }, host, { adopt: without });
    expect(await effectIn(fourth, false)).toMatchObject({ marked: "", stopped: "reached" });
    await fourth.close(limitMs);
  });
});

test.each(tiers)(
  "it needs no way out: with egress by %s nothing but the page's own requests is carried",
  async (tier) => {
    const made = await openTestEgress(tier, localRules, host);
    opened.push(made);
    const browser = await launch({ ...given(true), fillWorkspace: alone(packed.path), egress: made.proxy });
    site.requests.splice(0);
    expect(await effectIn(browser)).toMatchObject({
      marked: "packed",
      stopped: "TypeError: Failed to fetch",
    });
    expect(site.requests.filter((path) => !["/favicon.ico", "/stopped"].includes(path))).toEqual(["/"]);
  },
);

test("loaded as others are, it would stop nothing: that is why it is installed by policy", async () => {
  const { path, remove } = await packExtension({ chromium: chromium() });
  const fillWorkspace = async ({ directories: { extensions } }: StartDirectories) => {
    const placed = await placeExtension(extensions, "stops", path);
    await writeFile(join(placed.path, "update.xml"), "");
    return [await placeExtension(extensions, "plain", join(path, "../source"))];
  };
  const browser = await launch({ ...given(true), fillWorkspace });
  expect(await effectIn(browser, false)).toMatchObject({ marked: "packed", stopped: "reached" });
  site.requests.splice(0);
  await remove();
});

describe("what is not installed fails the launch", () => {
  /**
   * Waits 15 s for what policy installs, however long Chromium takes to come to that: the clock is set ahead
   * then, by which that wait ends, while the limit of the whole launch is a timer.
   */
  function launchImpatiently(path: string): Promise<Chromium> {
    let aheadMs = 0;
    const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + aheadMs };
    const onStage = (stage: LaunchStage): void => {
      if (stage === "extensions") setTimeout(() => (aheadMs = limitMs), 15_000);
    };
    const spec = { ...launchSpec(given(true)), fillWorkspace: alone(path) };
    return launchChromium(spec, { ...host, clock, launchLimitMs: limitMs }, { onStage });
  }
  const app = {
    manifest_version: 2,
    name: "App",
    version: "1.2",
    app: { background: { scripts: ["worker.js"] } },
    sockets: { udp: { send: "*" } },
  };

  const refused: readonly (readonly [string, Omit<Parameters<typeof packExtension>[0], "chromium">])[] = [
    [
      "asks for what is kept from extensions",
      { manifest: { permissions: ["webRequest", "webRequestBlocking", "proxy"] } },
    ],
    ["asks for a program of the host", { manifest: { permissions: ["webRequest", "nativeMessaging"] } }],
    ["is an app, packed", { packed: app }],
  ];
  // At once, since each waits for 15 s.
  test(`one that ${refused.map(([what]) => what).join(", or ")}`, async () => {
    const refusals = refused.map(async ([what, packing]) => {
      const { path, remove } = await packExtension({ chromium: chromium(), ...packing });
      onTestFinished(remove);
      await expect(launchImpatiently(path), what).rejects.toThrow(
        "Chromium refuses the extension stops: it was not installed by policy",
      );
    });
    await Promise.all(refusals);
  });

  test.each([
    ["no .crx", "Cr23........", "its .crx is none of version 3"],
    ["cut short", "Cr24\u0003\0\0\0\u0010\0\0\0", "its .crx is cut short"],
    ["shorter still", "Cr24", "its .crx is cut short"],
    ["without an id", "Cr24\u0003\0\0\0\0\0\0\0", "its .crx names no id"],
    ["of an absurd length", "Cr24\u0003\0\0\0\u00ff\u00ff\u00ff\u00ff", "its .crx is none of version 3"],
    [
      "of a header without end",
      "Cr24\u0003\0\0\0\u0002\0\0\0\u00ff\u00ff",
      "its .crx has a header that cannot be read",
    ],
  ])("its .crx is %s", async (_, text, reason) => {
    const fillWorkspace = async (room: StartDirectories) => {
      const [placed] = await alone(packed.path)(room);
      await writeFile(join(placed?.path ?? "", "stops.crx"), Buffer.from(text, "latin1"));
      return placed ? [placed] : [];
    };
    await expect(launch({ ...given(true), fillWorkspace })).rejects.toThrow(
      `the extension stops demands to be installed by policy, and ${reason}`,
    );
  });

  test("two of the same key", async () => {
    const fillWorkspace = async ({ directories: { extensions } }: StartDirectories) => [
      await placeExtension(extensions, "one", packed.path),
      await placeExtension(extensions, "two", packed.path),
    ];
    await expect(launch({ ...given(true), fillWorkspace })).rejects.toThrow(
      "another extension of this browser has the same key",
    );
  });

  test("no policy reaches browsers here", async () => {
    const bare = makeLauncher(() => withoutPrivateRoot(host));
    await expect(bare.launch({ ...given(true), fillWorkspace: alone(packed.path) })).rejects.toThrow(
      "an extension has to be installed by policy",
    );
  });
});

test("only one that asks for requests, and brings update.xml and .crx, demands policy", async () => {
  const found = await findForced({ name: "stops", path: packed.path });
  expect(found).toMatchObject({
    id: expect.stringMatching(/^[a-p]{32}$/),
    version: "1.2",
    hasWorker: true,
    crx: join(packed.path, "stops.crx"),
  });
  expect(await findForced({ name: "source", path: join(packed.path, "../source") })).toBeUndefined();
  await writeFile(join(packed.path, "../source/update.xml"), "");
  await writeFile(join(packed.path, "../source/x.crx"), "");
  await writeFile(join(packed.path, "../source/manifest.json"), JSON.stringify({ permissions: ["storage"] }));
  expect(await findForced({ name: "source", path: join(packed.path, "../source") })).toBeUndefined();
  expect(await findForced({ name: "none", path: "/nowhere" })).toBeUndefined();
});
