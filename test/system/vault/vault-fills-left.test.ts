import { chromium as playwright } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Clock, systemClock } from "../../../src/base/clock.js";
import { until } from "../../support/browser/chromium-until.js";
import { type FillSite, openFillSite } from "../../support/browser/fill/fill-bed.js";
import { login } from "../../support/browser/fill/fill-case.js";
import { type Daemon, startDaemon } from "../../support/daemon/daemon.js";

const path = "/vaults/logins/items/shop";
let daemon: Daemon;
let site: FillSite;
/**
 * How long the code is still good while the daemon's clock stands still: the fill waits for the next. No
 * other timer of a daemon takes as long.
 */
const leftMs = 2345;
let standsAt: number | undefined;
/** Ends that wait. */
let goOn: (() => void) | undefined;
const clock: Clock = {
  ...systemClock,
  now: () => standsAt ?? systemClock.now(),
  after(delayMs, task) {
    if (standsAt === undefined || delayMs !== leftMs) return systemClock.after(delayMs, task);
    goOn = task;
    return () => {};
  },
};
beforeAll(async () => {
  site = await openFillSite();
  const goes = `<script>user.oninput = () => { location.href = "/next"; }</script>`;
  site.serve({ body: `${login}${goes}`, others: { "/next": "next" } });
  daemon = await startDaemon({ clock });
  await daemon.call("POST /vaults", { name: "logins" });
  await daemon.call(`PUT ${path}`, {
    type: "credential",
    spec: {
      provider: "native",
      fields: [
        { name: "user", type: "text", value: "secret-1" },
        { name: "code", type: "totp", value: "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ" },
      ],
    },
  });
});
afterAll(async () => {
  await daemon.stop();
  await site.close();
});

test("a page that left while it was filled is not protected after, since nothing was written into the next", async () => {
  const session = { headless: true, vaults: [{ name: "logins" }], protect_filled: true };
  const { body } = await daemon.call("POST /browsers", session);
  const connected = await playwright.connectOverCDP(String(body.cdp_ws_url));
  const page = connected.contexts()[0]?.pages()[0];
  await page?.goto(`${site.here}/`);
  standsAt = Math.floor(systemClock.now() / 30_000) * 30_000 + 30_000 - leftMs;
  const filling = daemon.call(`POST ${path}/operations`, {
    type: "fill",
    browser_id: body.session_id,
    timeout_ms: 30_000,
    fields: [
      { field: "user", selector: "#user" },
      { field: "code", selector: "#password" },
    ],
  });
  const end = await until("a wait for the next code", () => goOn);
  await page?.waitForURL(/\/next$/);
  end();
  standsAt = undefined;
  expect((await filling).body).toMatchObject({
    status: "failed",
    fields: [{ status: "filled" }, { status: "failed", error_code: "target_changed" }],
  });
  expect(await page?.evaluate("document.body.textContent")).toContain("next");
  await connected.close();
});
