import { afterAll, beforeAll } from "vitest";
import type { BrowserHost } from "../../../../src/browser/host.js";
import { openTestHost } from "../chromium-host.js";
import { makeLauncher } from "../chromium-launcher.js";
import { type FillSite, openFillSite } from "./fill-bed.js";

/** What the tests of a file launch and fill beside a site; all of it ends with them. */
export function useFilledChromium(): {
  readonly site: FillSite;
  readonly launch: ReturnType<typeof makeLauncher>["launch"];
} {
  let opened: { readonly host: BrowserHost; readonly site: FillSite } | undefined;
  const bed = () => {
    if (!opened) throw new Error("Nothing is open before the first test");
    return opened;
  };
  beforeAll(async () => {
    const [host, site] = await Promise.all([openTestHost(), openFillSite()]);
    opened = { host, site };
  });
  const { launch, killAll } = makeLauncher(() => bed().host);
  afterAll(async () => {
    await killAll();
    await Promise.all([bed().host.close(), bed().site.close()]);
  });
  return {
    launch,
    get site() {
      return bed().site;
    },
  };
}
