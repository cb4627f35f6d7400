import { chromium, type Page } from "playwright-core";
import { expect } from "vitest";
import type { DaemonClient } from "../daemon/daemon.js";

/** A session that has the vault `logins`, and its page. */
export interface VaultSession {
  readonly id: string;
  readonly page: Page;
  close(): Promise<void>;
}

export async function openVaultSession(
  daemon: Pick<DaemonClient, "call">,
  url: string,
  body: object = {},
): Promise<VaultSession> {
  const wanted = { headless: true, vaults: [{ name: "logins" }], ...body };
  const session = await daemon.call("POST /browsers", wanted);
  expect(session, session.text).toMatchObject({ status: 200 });
  const browser = await chromium.connectOverCDP(String(session.body.cdp_ws_url));
  const page = browser.contexts()[0]?.pages()[0];
  if (!page) throw new Error("no page");
  await page.goto(url);
  const id = String(session.body.session_id);
  return {
    id,
    page,
    async close() {
      await browser.close();
      await daemon.call(`DELETE /browsers/${id}`);
    },
  };
}
