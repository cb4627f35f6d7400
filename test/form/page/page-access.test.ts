import { devices, type Page } from "playwright-core";
import { expect, test } from "vitest";
import { findBarriers, type FormPage, heading, save, sharedFormPages } from "../../support/form/form-page.js";
import { field } from "../../support/form/scripted-forms.js";

const { bed, open } = sharedFormPages();

test("it can be used by the keyboard alone", async () => {
  const form = await open();
  const { page } = form;
  await heading(form, "Example shop");
  const focused = () =>
    page.evaluate("document.activeElement.getAttribute('aria-label') ?? document.activeElement.tagName");
  expect(await focused()).toBe("H1");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await page.keyboard.type("secret");
  await page.keyboard.press("Tab");
  expect(await focused()).toBe("Show Password");
  await page.keyboard.press("Space");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await heading(form, "Saved");
  expect(await focused()).toBe("H1");
  expect(bed().forms.taken[0]?.values).toEqual({ password: "secret" });
});

test("it fits a phone's width", async () => {
  const { defaultBrowserType: _type, ...phone } = devices["iPhone SE"] ?? {};
  bed().forms.title = "W".repeat(400);
  bed().forms.fields = [field({ name: "x", label: "L".repeat(128) }), ...bed().forms.fields];
  const { page } = await open(phone);
  await page.locator("#form").waitFor();
  const widths = await page.evaluate<[number, number]>("[document.documentElement.scrollWidth, innerWidth]");
  expect(widths[0]).toBe(widths[1]);
});

const reached: readonly (readonly [string, (form: FormPage) => Promise<unknown>])[] = [
  ["form", (form) => heading(form, "Example shop")],
  [
    "form with faults",
    async (form) => {
      await save(form);
      await form.page.getByText("Enter a value.").waitFor();
    },
  ],
  [
    "done",
    async (form) => {
      await form.page.getByLabel("Password", { exact: true }).fill("secret");
      await save(form);
      await heading(form, "Saved");
    },
  ],
];

/** Where pictures of every state are put, for people to look at. */
const pictures = process.env["FORM_PICTURES"];

const narrow = { viewport: { width: 320, height: 640 }, deviceScaleFactor: 2 };

test.each([
  ["light", "wide", { colorScheme: "light" }],
  ["dark", "wide", { colorScheme: "dark" }],
  ["light", "narrow", { colorScheme: "light", ...narrow }],
  ["dark", "narrow", { colorScheme: "dark", ...narrow }],
] as const)("no barrier is found in any state, %s and %s", async (scheme, width, options) => {
  const pin = field({ name: "pin", label: "PIN", type: "password", sensitive: true, hasValue: true });
  const note = field({ name: "note", label: "Note", value: "one\ntwo", hasValue: true });
  bed().forms.fields = [...bed().forms.fields, pin, note];
  const look = async (page: Page, state: string): Promise<void> => {
    expect([state, await findBarriers(page)]).toEqual([state, []]);
    if (pictures)
      await page.screenshot({ path: `${pictures}/${state} ${scheme} ${width}.png`, fullPage: true });
  };
  for (const [state, reach] of reached) {
    const form = await open(options);
    await reach(form);
    await look(form.page, state);
  }
  for (const end of ["expired", "replaced", "used", "gone"] as const) {
    bed().forms.end = end;
    const { page } = await open(options);
    await page.locator(`#${end}`).waitFor();
    await look(page, end);
  }
  for (const state of ["loading", "offline", "insecure"]) {
    const { page } = await open(options);
    await page.locator("#gone").waitFor();
    await page.evaluate(
      `for (const section of document.querySelectorAll("main > .state[id]")) section.hidden = section.id !== "${state}"`,
    );
    await look(page, state);
  }
  const { page } = await open({ ...options, javaScriptEnabled: false });
  if (pictures)
    await page.screenshot({ path: `${pictures}/no script ${scheme} ${width}.png`, fullPage: true });
});
