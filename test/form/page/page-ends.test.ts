import { expect, test } from "vitest";
import { openFormBed } from "../../support/form/form-bed.js";
import {
  heading,
  openFormBrowser,
  openFormPage,
  save,
  sharedFormPages,
} from "../../support/form/form-page.js";
import { token } from "../../support/form/scripted-forms.js";

const { bed, browser, open } = sharedFormPages();

test("a link that nobody knows and one without a token look like one whose item is gone", async () => {
  bed().forms.end = "gone";
  const texts = [];
  for (const given of [token, "unknown", ""]) {
    const form = await open({}, given);
    await heading(form, "This link does not work");
    texts.push(await form.page.locator("main").innerText());
  }
  expect(new Set(texts).size).toBe(1);
});

test("without a connection the page keeps what was entered and sends the same bytes again", async () => {
  const form = await open();
  const { page } = form;
  await page.getByLabel("Password", { exact: true }).fill("secret");
  const bodies: (string | null)[] = [];
  page.on(
    "request",
    (request) => void (request.url().endsWith("/submit") && bodies.push(request.postData())),
  );
  // The vault takes it, and the answer is lost.
  await page.route("**/submit", async (route) => {
    await route.fetch();
    await route.abort();
  });
  await save(form);
  await heading(form, "There is no connection");
  await page.unroute("**/submit");
  await page.getByRole("button", { name: "Try again" }).click();
  await heading(form, "Saved");
  expect(bodies).toHaveLength(2);
  expect(bodies[0]).toBe(bodies[1]);
  expect(bed().forms.taken).toHaveLength(1);
});

test("a form that cannot be opened for want of a connection is opened once there is one", async () => {
  const form = await openFormPage(browser());
  await form.page.route("**/open", (route) => route.abort());
  await form.page.goto(`${bed().url}/#token=${token}`);
  await heading(form, "There is no connection");
  await form.page.unroute("**/open");
  await form.page.getByRole("button", { name: "Try again" }).click();
  await heading(form, "Example shop");
});

test("the time that is left is told ahead, and the page ends with it", async () => {
  bed().forms.expiresInMs = 119_000;
  const warned = await open();
  await warned.page.getByText(/This page can be used until \d\d:\d\d\./).waitFor();
  await warned.page.getByRole("status").getByText("two more minutes").waitFor();
  bed().forms.expiresInMs = 1000;
  const ended = await open();
  await heading(ended, "This link has expired");
  expect(await ended.page.locator("input").count()).toBe(0);
});

test("another link in the same tab opens its own form", async () => {
  const form = await open({}, "unknown");
  await heading(form, "This link does not work");
  await form.page.goto(`${bed().url}/#token=${token}`);
  await heading(form, "Example shop");
  expect(form.page.url()).toBe(`${bed().url}/`);
});

test("without JavaScript it is said that it is needed", async () => {
  const form = await open({ javaScriptEnabled: false });
  await heading(form, "JavaScript is needed here");
  expect(await form.page.getByRole("heading").count()).toBe(1);
  expect(bed().forms.opened).toEqual([]);
});

test("without HTTPS nothing can be entered", async () => {
  const named = await openFormBrowser(["--host-resolver-rules=MAP form.example 127.0.0.1"]);
  const elsewhere = await openFormBed({ publicUrl: "http://form.example" });
  try {
    const form = await openFormPage(named);
    await form.page.goto(`http://form.example:${elsewhere.port}/#token=${token}`);
    await heading(form, "This page is not secure");
    expect(await form.page.locator("input:visible").count()).toBe(0);
  } finally {
    await named.close();
    await elsewhere.close();
  }
});

test.each([
  ["expired", "This link has expired"],
  ["replaced", "This link has been replaced"],
  ["used", "This link has been used"],
  ["gone", "This link does not work"],
] as const)("a link that is %s says so, when it is opened and when it is submitted", async (end, text) => {
  bed().forms.end = end;
  await heading(await open(), text);
  bed().forms.end = undefined;
  const form = await open();
  await form.page.getByLabel("Password", { exact: true }).fill("secret");
  bed().forms.end = end;
  await save(form);
  await heading(form, text);
  expect(await form.page.locator("input").count()).toBe(0);
});
