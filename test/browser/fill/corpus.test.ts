import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Chromium } from "../../../src/browser/chromium.js";
import type { BrowserHost } from "../../../src/browser/host.js";
import { openTestHost } from "../../support/browser/chromium-host.js";
import { engines } from "../../support/browser/chromium-kinds.js";
import { makeLauncher } from "../../support/browser/chromium-launcher.js";
import { type FillSite, openFillSite, tryCase } from "../../support/browser/fill/fill-bed.js";
import { fieldPages } from "../../support/browser/fill/field-pages.js";
import { framePages } from "../../support/browser/fill/frame-pages.js";
import { hostilePages } from "../../support/browser/fill/hostile-pages.js";

let host: BrowserHost;
let site: FillSite;
beforeAll(async () => {
  [host, site] = await Promise.all([openTestHost(), openFillSite()]);
});
const { launch, killAll } = makeLauncher(() => host);
afterAll(async () => {
  await killAll();
  await Promise.all([host.close(), site.close()]);
});

const corpus = [...fieldPages, ...framePages, ...hostilePages];

test("the corpus has 40 pages and more, each with a name of its own", () => {
  expect(new Set(corpus.map(({ name }) => name)).size).toBe(corpus.length);
  expect(corpus.length).toBeGreaterThanOrEqual(40);
});

// Values are written without focus and without keys, so that a window changes nothing.
describe.each(engines)("%s", (_, given) => {
  let chromium: Chromium;
  beforeAll(async () => {
    chromium = await launch(given);
  });

  test.each(corpus.map((each) => [each.name, each] as const))(
    "%s: what is said of each field is what became of it, and no value is elsewhere",
    async (_name, each) => {
      const { status, outcomes, values } = each;
      expect(await tryCase(chromium, site, each)).toEqual({ status, outcomes, values });
      expect(site.requests.filter((url) => /secret|submitted/.test(url))).toEqual([]);
    },
  );
});
