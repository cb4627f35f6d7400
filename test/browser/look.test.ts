import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { LaunchSpec } from "../../src/browser/chromium.js";
import type { BrowserHost } from "../../src/browser/host.js";
import { PipeClient } from "../support/browser/chromium-client.js";
import { openTestHost } from "../support/browser/chromium-host.js";
import { kinds } from "../support/browser/chromium-kinds.js";
import { makeLauncher } from "../support/browser/chromium-launcher.js";
import { openSite, type Site } from "../support/browser/chromium-site.js";

let host: BrowserHost;
let site: Site;
beforeAll(async () => {
  [host, site] = await Promise.all([openTestHost(), openSite()]);
});
const { launch, killAll } = makeLauncher(() => host);
afterEach(killAll);
afterAll(() => Promise.all([host.close(), site.close()]));

/** Opens the site; what is given back looks at its page, whose window may take its size later. */
async function openLook(given: Partial<LaunchSpec>, expression: string): Promise<() => Promise<unknown>> {
  const client = new PipeClient(await launch(given));
  const session = await client.attach();
  await client.open(`${site.origin}/`, session);
  return () => client.evaluate(expression, session);
}

const seen = async (given: Partial<LaunchSpec>, expression: string): Promise<unknown> =>
  (await openLook(given, expression))();

const marks =
  "({ webdriver: navigator.webdriver, agent: navigator.userAgent, brands: navigator.userAgentData.brands.map((each) => each.brand) })";

test.each(kinds)(
  "%s in stealth shows none of the marks that switches can take away",
  async (_name, given) => {
    const found = (await seen({ ...given, stealth: true }, marks)) as { agent: string; brands: string[] };
    expect(found).toMatchObject({ webdriver: false });
    expect(found.agent).not.toContain("Headless");
    // headless-shell names itself among the brands whatever its switches say.
    if (given.engine === "chromium") expect(found.brands).not.toContain("HeadlessChrome");
  },
);

test.each(kinds)("%s without stealth says that it is automated", async (_name, given) => {
  expect(await seen(given, marks)).toMatchObject({ webdriver: true });
});

test("kiosk mode fills the display with the page", async () => {
  const given = {
    engine: "chromium",
    headless: false,
    kioskMode: true,
    viewport: { width: 1000, height: 700 },
  } as const;
  await expect.poll(await openLook(given, "[innerWidth, innerHeight]")).toEqual([1000, 699]);
});

test("there is no bar between the toolbar and the page", async () => {
  const given = { engine: "chromium", headless: false, viewport: { width: 1000, height: 700 } } as const;
  const look = await openLook(given, "[outerWidth, outerHeight, outerHeight - innerHeight]");
  await expect.poll(look).toEqual([1000, 699, 87]);
});

test("a headful browser's screen has the viewport's size", async () => {
  const given = { engine: "chromium", headless: false, viewport: { width: 1000, height: 700 } } as const;
  await expect.poll(await openLook(given, "[screen.width, screen.height]")).toEqual([1000, 700]);
});
