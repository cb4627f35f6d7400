import { chromium as playwright } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { systemClock } from "../../src/base/clock.js";
import { type FillSite, openFillSite } from "../support/browser/fill/fill-bed.js";
import { login } from "../support/browser/fill/fill-case.js";
import { type Daemon, startDaemon } from "../support/daemon/daemon.js";

const path = "/vaults/logins/items/shop";
let daemon: Daemon;
let site: FillSite;
/** Moved so that a code is good for two seconds, and the fill waits for the next. */
let ahead = 0;
beforeAll(async () => {
  site = await openFillSite();
  const goes = `<script>user.oninput = () => { location.href = "/next"; }</script>`;
  site.serve({ body: `${login}${goes}`, others: { "/next": "next" } });
  daemon = await startDaemon({ clock: { ...systemClock, now: () => systemClock.now() + ahead } });
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
}, 120_000);
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
  ahead = 28_000 - (systemClock.now() % 30_000);
  const filled = await daemon.call(`POST ${path}/operations`, {
    type: "fill",
    browser_id: body.session_id,
    fields: [
      { field: "user", selector: "#user" },
      { field: "code", selector: "#password" },
    ],
  });
  expect(filled.body).toMatchObject({
    status: "failed",
    fields: [{ status: "filled" }, { status: "failed", error_code: "target_changed" }],
  });
  expect(await page?.evaluate("document.body.textContent")).toContain("next");
  await connected.close();
});
