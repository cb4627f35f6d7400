import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Chromium, LaunchSpec } from "../../../src/browser/chromium.js";
import { DisplayTooSmall } from "../../../src/browser/display/display.js";
import type { BrowserHost } from "../../../src/browser/host.js";
import { launchChromium } from "../../support/browser/launch-chromium.js";
import { PipeClient, type Target } from "../../support/browser/chromium-client.js";
import { launchSpec, openTestHost } from "../../support/browser/chromium-host.js";
import { kinds } from "../../support/browser/chromium-kinds.js";
import { type Site, openSite } from "../../support/browser/chromium-site.js";
import { until } from "../../support/browser/chromium-until.js";

let host: BrowserHost;
let site: Site;
beforeAll(async () => {
  [host, site] = await Promise.all([openTestHost(), openSite()]);
});
afterAll(() => Promise.all([host.close(), site.close()]));

async function withBrowser(
  given: Partial<LaunchSpec>,
  use: (chromium: Chromium, client: PipeClient) => Promise<void>,
): Promise<void> {
  const chromium = await launchChromium(launchSpec(given), host);
  try {
    await use(chromium, new PipeClient(chromium));
  } finally {
    await chromium.kill();
  }
}

describe.each(kinds)("%s", (_name, given) => {
  // One browser for all that leaves it with a single page again.
  let chromium: Chromium;
  let client: PipeClient;
  beforeAll(async () => {
    chromium = await launchChromium(launchSpec(given), host);
    client = new PipeClient(chromium);
  });
  afterAll(() => chromium.kill());

  const nextPage = (before: Target | undefined): Promise<Target> =>
    until("a blank page", async () =>
      (await client.targets()).find(({ targetId }) => targetId !== before?.targetId),
    );

  test("starts with one blank page and nothing else that a client could see", async () => {
    const { targetInfos } = await client.send("Target.getTargets");
    expect(targetInfos).toMatchObject([{ type: "page", url: "about:blank" }]);
  });

  test("opens no page as long as one is open", async () => {
    const { targetId } = await client.send("Target.createTarget", { url: site.origin });
    await client.send("Target.closeTarget", { targetId });
    await until("the page is gone", async () => (await client.targets()).length === 1);
    expect(await client.targets()).toMatchObject([{ url: "about:blank" }]);
  });

  test("stays when its last page is closed by a client, and has a blank page again", async () => {
    const [page] = await client.targets();
    await client.send("Target.closeTarget", { targetId: page?.targetId });
    expect((await nextPage(page)).url).toBe("about:blank");
    expect(await client.targets()).toHaveLength(1);
    await chromium.probe(20_000);
  });

  test("stays when its last page closes itself, and the next one can be driven", async () => {
    const [page] = await client.targets();
    client.evaluate("window.open('', '_self'); window.close()", await client.attach()).catch(() => {});
    const next = await nextPage(page);
    expect(await client.evaluate("1 + 1", await client.attach(next.targetId))).toBe(2);
  });

  test("opens its start url after launch, and another page on demand", () =>
    withBrowser({ ...given, startUrl: `${site.origin}/start` }, async (fresh, visitor) => {
      await until("start url", async () => (await visitor.targets())[0]?.url === `${site.origin}/start`);
      await fresh.navigate(`${site.origin}/next`);
      await until("next url", async () => (await visitor.targets())[0]?.url === `${site.origin}/next`);
      expect(await visitor.targets()).toHaveLength(1);
    }));

  test("has the viewport it was given, and others after a resize", () =>
    withBrowser({ ...given, viewport: { width: 1000, height: 700 } }, async (fresh, visitor) => {
      const session = await visitor.attach();
      const size = given.headless
        ? "[innerWidth, innerHeight]"
        : "[outerWidth, outerHeight + 1, screen.width, screen.height]";
      const becomes = (width: number, height: number): Promise<boolean> =>
        until(
          `${width} × ${height}`,
          async () =>
            String(await visitor.evaluate(size, session)) ===
            String(given.headless ? [width, height] : [width, height, width, height]),
        );
      await becomes(1000, 700);
      for (const [width, height] of [
        [1400, 900],
        [900, 600],
        [1000, 700],
      ] as const) {
        await fresh.resize({ width, height });
        await becomes(width, height);
      }
      expect(await fresh.reset(100_000)).toEqual({ differences: [] });
    }));
});

test("a headful browser's display can become as large as it was, or 2560 × 1440, and no larger", async () => {
  const given = { engine: "chromium", headless: false } as const;
  await withBrowser({ ...given, viewport: { width: 3000, height: 800 } }, async (chromium) => {
    await chromium.resize({ width: 3000, height: 1440 });
    await expect(chromium.resize({ width: 3001, height: 800 })).rejects.toThrow(DisplayTooSmall);
    await expect(chromium.resize({ width: 800, height: 1441 })).rejects.toThrow("3000 × 1440");
    await chromium.probe(20_000);
  });
});
