import type { Locator } from "playwright-core";
import { expect, test } from "vitest";
import { isEmail } from "../../../src/vault/credentials/field-values.js";
import { tokenDigest } from "../../../src/vault/encryption/data-key.js";
import { heading, save, sharedFormPages } from "../../support/form/form-page.js";
import { field, token } from "../../support/form/scripted-forms.js";

const hasFocus = async (input: Locator): Promise<boolean> =>
  (await input.and(input.page().locator(":focus")).count()) === 1;
const { bed, open } = sharedFormPages();

test("what was entered reaches the vault encrypted, field by field, and nothing else does", async () => {
  const form = await open();
  const { page, troubles } = form;
  await heading(form, "Example shop");
  expect(await page.getByText("Vault team-logins").count()).toBe(1);
  expect(await page.title()).toBe("Enter details · Remuda vault");
  expect(await page.getByLabel("User name", { exact: true }).inputValue()).toBe("ada");
  await page.getByLabel("E-mail", { exact: true }).fill("ada@example.com");
  await page.getByLabel("Password", { exact: true }).fill('pässwörd 🐴 \\" ');
  const sent = page.waitForRequest(/\/submit$/);
  await save(form);
  const { values, ...rest } = (await sent).postDataJSON() as { values: Record<string, string> };
  expect(rest).toEqual({ token, version: 3 });
  expect(JSON.stringify(values)).not.toMatch(/ada@example|pässwörd/);
  await heading(form, "Saved");
  const [taken] = bed().forms.taken;
  const link = tokenDigest(token);
  expect(taken?.values).toEqual({ mail: "ada@example.com", password: 'pässwörd 🐴 \\" ' });
  expect(taken?.headers.map(({ alg, enc, field: of, link: from }) => [alg, enc, of, from])).toEqual([
    ["ECDH-ES", "A256GCM", "mail", link],
    ["ECDH-ES", "A256GCM", "password", link],
  ]);
  expect(await page.locator("input").count()).toBe(0);
  expect(troubles).toEqual([]);
});

test("inputs stand in the order of the fields, named, and with what password managers are to know", async () => {
  const form = await open();
  await heading(form, "Example shop");
  const inputs = await form.page.evaluate(
    "[...document.querySelectorAll('input')].map((one) => [one.labels[0].textContent, one.type, one.autocomplete, one.required])",
  );
  expect(inputs).toEqual([
    ["User name", "text", "off", true],
    ["E-mail", "email", "email", false],
    ["Password", "password", "new-password", true],
  ]);
});

test("required inputs that are seen have to be filled, and the first fault has the focus", async () => {
  const form = await open();
  const { page } = form;
  await page.getByLabel("User name", { exact: true }).fill("");
  await page.getByLabel("E-mail", { exact: true }).fill("nonsense");
  await save(form);
  const name = page.getByLabel("User name", { exact: true });
  expect(await hasFocus(name)).toBe(true);
  const told = async (label: string) => {
    const input = page.getByLabel(label, { exact: true });
    const ids = (await input.getAttribute("aria-describedby")) ?? "";
    const texts = await Promise.all(ids.split(" ").map((id) => page.locator(`#${id}`).textContent()));
    return [await input.getAttribute("aria-invalid"), texts.at(-1)];
  };
  expect(await told("User name")).toEqual(["true", "Enter a value."]);
  expect(await told("E-mail")).toEqual(["true", "Enter an e-mail address, such as name@example.com."]);
  expect(await told("Password")).toEqual(["true", "Enter a value."]);
  expect(bed().forms.held).toBe(0);
  await name.fill("eve");
  expect(await name.getAttribute("aria-invalid")).toBeNull();
  await page.getByLabel("E-mail", { exact: true }).fill("");
  await page.getByLabel("Password", { exact: true }).fill("x".repeat(16_385));
  await save(form);
  expect(await told("Password")).toEqual(["true", "This is longer than can be kept."]);
  await page.getByLabel("Password", { exact: true }).fill("x".repeat(16_384));
  await save(form);
  await heading(form, "Saved");
  expect(bed().forms.taken[0]?.values).toEqual({ username: "eve", password: "x".repeat(16_384) });
});

test("a stored secret is kept unless it is replaced, and one that is to be replaced has to be given", async () => {
  bed().forms.fields = [
    field({ name: "user", value: "ada", hasValue: true }),
    field({ name: "password", label: "Password", type: "password", sensitive: true, hasValue: true }),
  ];
  const kept = await open();
  await kept.page.getByText("A value is saved.").last().waitFor();
  expect(await kept.page.getByLabel("Password", { exact: true }).isVisible()).toBe(false);
  await save(kept);
  await heading(kept, "Saved");
  expect(bed().forms.taken[0]?.values).toEqual({});

  bed().forms.end = undefined;
  const replaced = await open();
  const { page } = replaced;
  await page.getByRole("button", { name: "Replace Password" }).click();
  await save(replaced);
  await page.getByText("Enter a value.").waitFor();
  await page.getByRole("button", { name: "Keep the saved value of Password" }).click();
  await page.getByRole("button", { name: "Replace Password" }).click();
  await page.getByLabel("Password", { exact: true }).fill("new");
  await save(replaced);
  await heading(replaced, "Saved");
  expect(bed().forms.taken[1]?.values).toEqual({ password: "new" });
});

test("what is shown is cleared where it may be, and a value that is not changed is not sent", async () => {
  bed().forms.fields = [
    field({ name: "note", required: false, value: "old", hasValue: true }),
    field({ name: "user", value: "ada", hasValue: true }),
  ];
  const form = await open();
  await form.page.getByLabel("note", { exact: true }).fill("");
  await save(form);
  await heading(form, "Saved");
  expect(bed().forms.taken[0]?.values).toEqual({ note: "" });
});

test.each(["a\nb", "a\r\nb", "\n"])(
  "a stored text with line breaks that nobody changes is not sent: %j",
  async (value) => {
    const note = field({ name: "note", value, hasValue: true });
    bed().forms.fields = [note, field({ name: "password", type: "password", sensitive: true })];
    const form = await open();
    await form.page.getByLabel("password", { exact: true }).fill("secret");
    await save(form);
    await heading(form, "Saved");
    expect(bed().forms.taken[0]?.values).toEqual({ password: "secret" });
  },
);

test("a stored text with line breaks keeps them where one of its lines is changed", async () => {
  bed().forms.fields = [field({ name: "note", value: "one\ntwo", hasValue: true })];
  const form = await open();
  const input = form.page.getByLabel("note", { exact: true });
  await input.press("Control+End");
  await input.press("Enter");
  await input.pressSequentially("three");
  await save(form);
  await heading(form, "Saved");
  expect(bed().forms.taken[0]?.values).toEqual({ note: "one\ntwo\nthree" });
  expect(form.troubles).toEqual([]);
});

test.each(["me@localhost", "kept by an earlier rule"])(
  "an address that is stored and that nobody changes keeps nothing from being saved: %s",
  async (value) => {
    bed().forms.fields = [
      field({ name: "mail", type: "email", value, hasValue: true }),
      field({ name: "password", type: "password", sensitive: true }),
    ];
    const form = await open();
    await form.page.getByLabel("password", { exact: true }).fill("secret");
    await save(form);
    await heading(form, "Saved");
    expect(bed().forms.taken[0]?.values).toEqual({ password: "secret" });
  },
);

test("an address is one for the form where it is one for the vault", async () => {
  bed().forms.fields = [
    field({ name: "mail", type: "email" }),
    field({ name: "password", type: "password", sensitive: true }),
  ];
  const form = await open();
  const mail = form.page.getByLabel("mail", { exact: true });
  const long = `${"x".repeat(244)}@b.example`;
  const good = ["me@localhost", "a@b.c", "a.b+c@d-e.example", "!#$%&'*+/=?^_`{|}~-@a", long];
  const bad = ["nonsense", "a@", "@b.c", "a@b..c", "a@b_c.d", "a@-b.c", "a@b-.c", "a b@c.d", "a@b@c.d"];
  const addresses = [...good, ...bad, `x${long}`, `a@${"b".repeat(63)}.c`, `a@${"b".repeat(64)}.c`];
  const told: (readonly [string, boolean])[] = [];
  for (const address of addresses) {
    await mail.fill(address);
    // The password that is missing keeps it from being sent.
    await save(form);
    told.push([address, (await mail.getAttribute("aria-invalid")) === null]);
  }
  expect(told).toEqual(addresses.map((address) => [address, isEmail(address)]));
  expect(new Set(told.map(([, isTaken]) => isTaken)).size).toBe(2);
  expect(bed().forms.held).toBe(0);
});

test("a password is shown on demand", async () => {
  const { page } = await open();
  const input = page.getByLabel("Password", { exact: true });
  const reveal = page.getByRole("button", { name: "Show Password" });
  expect([await input.getAttribute("type"), await reveal.getAttribute("aria-pressed")]).toEqual([
    "password",
    "false",
  ]);
  await reveal.click();
  expect([await input.getAttribute("type"), await reveal.getAttribute("aria-pressed")]).toEqual([
    "text",
    "true",
  ]);
});

test("a second click while it is sent sends nothing", async () => {
  let release = (): void => {};
  bed().forms.hold = new Promise<void>((resolve) => (release = resolve));
  const form = await open();
  await form.page.getByLabel("Password", { exact: true }).fill("secret");
  await form.page.locator("#send").dblclick();
  await expect.poll(() => bed().forms.held).toBe(1);
  await form.page.locator("#send").click({ force: true });
  await form.page.getByLabel("Password", { exact: true }).press("Enter");
  expect(await form.page.locator("#send").getAttribute("aria-disabled")).toBe("true");
  release();
  await heading(form, "Saved");
  expect(bed().forms.held).toBe(1);
});

test("faults that the vault finds are told at their fields", async () => {
  bed().forms.answer = { kind: "invalid", fields: [{ name: "mail", fault: "invalid_email" }] };
  const form = await open();
  const { page } = form;
  await page.getByLabel("E-mail", { exact: true }).fill("a@b.c");
  await page.getByLabel("Password", { exact: true }).fill("secret");
  await save(form);
  await page.getByText("This was not saved.").waitFor();
  const input = page.getByLabel("E-mail", { exact: true });
  expect(await hasFocus(input)).toBe(true);
  expect(await page.getByLabel("Password", { exact: true }).inputValue()).toBe("secret");
  bed().forms.answer = undefined;
  await save(form);
  await heading(form, "Saved");
});
