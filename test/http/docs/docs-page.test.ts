import { chromium } from "playwright-core";
import { expect, test } from "vitest";
import { findExecutable } from "../../../src/browser/executable.js";
import { key, sharedServer } from "../../support/http/http-server.js";

const server = sharedServer();

test(
  "the page of the documentation works under its policy, asks nobody else, and bears our name",
  { timeout: 60_000 },
  async () => {
    const executablePath = await findExecutable("headless-shell");
    if (executablePath === undefined) throw new Error("chromium-headless-shell is not installed");
    const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
    try {
      const page = await browser.newPage();
      const troubles: string[] = [];
      const hosts = new Set<string>();
      page.on("console", (message) => void (message.type() === "error" && troubles.push(message.text())));
      page.on("pageerror", (error) => void troubles.push(String(error)));
      page.on(
        "request",
        (request) =>
          void hosts.add(new URL(request.url()).protocol === "data:" ? "data" : new URL(request.url()).host),
      );
      await page.addInitScript(
        "addEventListener('securitypolicyviolation', (event) => console.error('policy: ' + event.violatedDirective + ' ' + event.blockedURI))",
      );
      await page.goto(`${server().url}/docs`);
      await page.locator(".opblock").first().waitFor();
      expect(await page.title()).toBe("Remuda API");
      expect(await page.locator(".topbar-wrapper img").getAttribute("src")).toMatch(
        /^data:image\/svg\+xml;base64,/,
      );
      expect(await page.content()).not.toContain("Swagger UI");
      await page.locator("#operations-health-getHealth, [id$=getHealth]").first().click();
      await page.getByRole("button", { name: "Try it out" }).click();
      await page.getByRole("button", { name: "Execute" }).click();
      await page.locator(".live-responses-table .response-col_status").first().waitFor();
      expect(await page.locator(".live-responses-table").innerText()).toContain("200");
      expect(troubles).toEqual([]);
      expect([...hosts].filter((host) => host !== "data")).toEqual([new URL(server().url).host]);
      const control = await page.evaluate(() => fetch("http://127.0.0.1:1/").then(() => "sent", String));
      expect(control).toContain("TypeError");
      expect(troubles.join()).toContain("connect-src");
      expect(await page.content()).not.toContain(key);
    } finally {
      await browser.close();
    }
  },
);
