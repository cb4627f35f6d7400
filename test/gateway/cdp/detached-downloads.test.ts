import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { engines } from "../../support/browser/chromium-kinds.js";
import { until } from "../../support/browser/chromium-until.js";
import { openBrowserBesideSite } from "../../support/gateway/gateway-browser.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";

const methods = ["Page.setDownloadBehavior", "Browser.setDownloadBehavior"];

test.each(engines)(
  "%s: downloads land in the session's own once the page's session that chose otherwise has detached",
  async (_, spec) => {
    const { browser, site } = await openBrowserBesideSite(spec);
    const { downloads } = browser.chromium.directories;
    const client = await connectRaw(browser.url());
    const page = await client.attach();
    const denyAndDetach = async (method: string): Promise<void> => {
      const chooser = await client.attach();
      expect(await client.send(method, { behavior: "deny" }, chooser)).toHaveProperty("result");
      await client.send("Target.detachFromTarget", { sessionId: chooser });
    };
    for (const method of methods) {
      await denyAndDetach(method);
      await client.send("Page.navigate", { url: `${site.origin}/file` }, page);
      await until("the download is there", async () => (await readdir(downloads)).includes("kept.txt"));
      await rm(join(downloads, "kept.txt"));
    }
    await client.close();
  },
);
