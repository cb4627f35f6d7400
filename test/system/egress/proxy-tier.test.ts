import { expect, test } from "vitest";
import { openSite } from "../../support/browser/chromium-site.js";
import { startDaemon } from "../../support/daemon/daemon.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import { until } from "../../support/browser/chromium-until.js";

test.each(["headless-shell", "chromium"])(
  "%s reaches its own proxy in the proxy tier, by an address that no page may reach",
  async (engine) => {
    const [daemon, site] = await Promise.all([
      startDaemon({ file: { egress: { isolation: "proxy" } } }),
      openSite(),
    ]);
    await daemon.makePool({ name: "herd", engine });
    const { body: lease } = await daemon.call("POST /browser_pools/herd/acquire", {
      acquire_timeout_seconds: 30,
    });
    const client = await connectRaw(lease.cdp_ws_url);
    const page = await client.attach();
    await client.send("Page.navigate", { url: site.origin }, page);
    await until("the page", async () => await client.evaluate("document.body.innerText === 'hello'", page));
    expect(daemon.log).not.toContain("stranger refused");
    await client.close();
    await daemon.stop();
    await site.close();
  },
);
