import { expect, test } from "vitest";
import type { AuditRecorder } from "../../src/audit/writer.js";
import { RemudaError } from "../../src/base/errors.js";
import { send } from "../support/http/http-server.js";
import { openFormBed, eachFormBed } from "../support/form/form-bed.js";
import { token } from "../support/form/scripted-forms.js";

const bed = eachFormBed();

const submission = { token, version: 3, values: {} };

test("the page and its files are served, each with every header", async () => {
  const { url } = bed();
  const types = {
    "/": "text/html",
    "/form.css": "text/css",
    "/form.mjs": "text/javascript",
    "/fields.mjs": "text/javascript",
    "/jwe.mjs": "text/javascript",
    "/icon.svg": "image/svg+xml",
  };
  for (const [path, type] of Object.entries(types)) {
    const got = await send(url + path);
    expect([path, got.status, got.headers.get("content-type")?.split(";")[0]]).toEqual([path, 200, type]);
    expect(Object.fromEntries(got.headers)).toMatchObject(expectedHeaders);
  }
});

const expectedHeaders = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
    "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
    "require-trusted-types-for 'script'; trusted-types 'none'",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cache-control": "no-store",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy":
    "camera=(), microphone=(), geolocation=(), payment=(), usb=(), display-capture=(), clipboard-read=()",
};

test("answers and refusals carry the same headers, and nothing sets a cookie", async () => {
  const { url, ask } = bed();
  const got = [
    await ask("/open", { token }),
    await ask("/open", { token: "unknown" }),
    await ask("/open", { nothing: 1 }),
    await send(`${url}/nowhere`),
    await send(`${url}/open`),
    await send(`${url}/%zz`),
  ];
  expect(got.map(({ status }) => status)).toEqual([200, 404, 400, 404, 404, 400]);
  for (const { headers } of got) {
    expect(Object.fromEntries(headers)).toMatchObject(expectedHeaders);
    expect(headers.get("set-cookie")).toBeNull();
    expect(headers.get("access-control-allow-origin")).toBeNull();
  }
});

test("behind HTTPS browsers are told to stay there, and only there", async () => {
  const secure = await openFormBed({ publicUrl: "https://form.example" });
  const got = await send(`${secure.url}/`);
  await secure.close();
  expect(got.headers.get("strict-transport-security")).toBe("max-age=31536000");
  expect((await send(`${bed().url}/`)).headers.get("strict-transport-security")).toBeNull();
});

test("a link opens a form with what the page shows, and nothing else", async () => {
  const { ask, forms } = bed();
  const { body } = await ask("/open", { token });
  expect(Object.keys(body).sort()).toEqual(
    ["encryption_key", "expires_in_ms", "fields", "state", "title", "vault", "version"].sort(),
  );
  expect(body).toMatchObject({ state: "form", title: "Example shop", vault: "team-logins", version: 3 });
  expect(body.fields.map(({ name }: { name: string }) => name)).toEqual(["username", "mail", "password"]);
  expect(body.expires_in_ms).toBeGreaterThan(1_700_000);
  expect(forms.opened).toEqual([token]);
});

test("a heading of 16 KiB is cut, between characters", async () => {
  const { ask, forms } = bed();
  forms.title = "🐴".repeat(4000);
  const { body } = await ask("/open", { token });
  expect(body.title).toBe(`${"🐴".repeat(499)}…`);
});

test.each([
  ["gone", 404],
  ["expired", 410],
  ["used", 410],
  ["replaced", 409],
] as const)("a link that is %s is answered %i, opened or submitted", async (end, status) => {
  const { ask, forms } = bed();
  forms.end = end;
  for (const got of [await ask("/open", { token }), await ask("/submit", submission)])
    expect(got).toMatchObject({ status, body: { state: end } });
});

test("a link that nobody knows is answered as one whose item is gone, to the byte", async () => {
  const { ask, forms } = bed();
  const unknown = ["", "x", "x".repeat(43), `${token.slice(0, -1)}d`, "x".repeat(4000), "\u0000", "../../"];
  forms.end = "gone";
  const gone = await ask("/open", { token });
  for (const given of unknown) {
    const got = await ask("/open", { token: given });
    expect([got.status, got.text]).toEqual([gone.status, gone.text]);
  }
});

test("a submission is done once; the same bytes once more are told the same, and others that it was used", async () => {
  const { ask, forms } = bed();
  const first = await ask("/submit", submission);
  const again = await ask("/submit", submission);
  const other = await ask("/submit", { ...submission, values: { mail: "not.a.jwe" } }).then(
    ({ body }) => body,
  );
  expect([first, again]).toMatchObject([
    { status: 200, body: { state: "done" } },
    { status: 200, body: { state: "done" } },
  ]);
  expect(other).not.toMatchObject({ state: "done" });
  expect(forms.taken).toHaveLength(1);
});

test("a submission that failed is not answered with that when it comes again", async () => {
  const { ask, forms } = bed();
  forms.hold = Promise.reject(new Error("the store is away"));
  forms.hold.catch(() => {});
  expect(await ask("/submit", { ...submission, version: 5 })).toMatchObject({
    status: 503,
    body: { state: "unavailable" },
  });
  forms.hold = Promise.resolve();
  expect(await ask("/submit", { ...submission, version: 5 })).toMatchObject({
    status: 200,
    body: { state: "done" },
  });
});

test("a submission that could not be put on record names the intent in its entry, since that may be there", async () => {
  const seen: (string | undefined)[] = [];
  const audit: AuditRecorder = {
    record: ({ status, intent }) => void seen.push(String(status), intent),
    async recordNow() {},
    async begin(intent) {
      seen.push(intent);
      throw new RemudaError("store_unavailable");
    },
  };
  const { ask, forms, close } = await openFormBed({}, { audit });
  expect((await ask("/submit", submission)).status).toBe(503);
  await close();
  const [intent] = seen;
  expect(seen).toEqual([expect.stringMatching(/./), "503", intent]);
  expect(forms.taken).toEqual([]);
});

test("faults of fields are handed on", async () => {
  const { ask, forms } = bed();
  forms.answer = { kind: "invalid", fields: [{ name: "mail", fault: "invalid_email" }] };
  expect(await ask("/submit", { ...submission, version: 6 })).toMatchObject({
    status: 400,
    body: { state: "invalid", fields: [{ name: "mail", fault: "invalid_email" }] },
  });
});

test("bodies of another shape reach nobody", async () => {
  const { url, ask, forms } = bed();
  const wrong = [
    {},
    [],
    { token: 1 },
    { token: null },
    { token, more: 1 },
    { ...submission, version: "3" },
    { ...submission, version: 0 },
    { ...submission, version: 1.5 },
    { ...submission, values: { password: 1 } },
    { ...submission, values: { password: { value: "plain" } } },
    { ...submission, values: Object.fromEntries(Array.from({ length: 33 }, (_, at) => [`f${at}`, "x"])) },
  ];
  for (const body of wrong.slice(0, 5)) expect((await ask("/open", body)).status).toBe(400);
  for (const body of wrong) expect((await ask("/submit", body)).status).toBe(400);
  const texts = ["", "nonsense", '{"token":"a","__proto__":{"x":1}}', `token=${token}`];
  for (const text of texts) {
    const headers = { "content-type": "application/json" };
    expect((await send(`${url}/open`, { method: "POST", text, headers })).status).toBe(400);
  }
  expect([forms.opened, forms.taken]).toEqual([[], []]);
});

test("what a form of another page can send is refused, whatever type it says", async () => {
  const { url, forms } = bed();
  const text = JSON.stringify({ token });
  for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]) {
    const got = await send(`${url}/open`, { method: "POST", text, headers: { "content-type": type } });
    expect([type, got.status]).toEqual([type, 400]);
  }
  const asked = await send(`${url}/open`, { method: "OPTIONS", headers: { origin: "https://evil.example" } });
  expect([asked.status, asked.headers.get("access-control-allow-origin")]).toEqual([404, null]);
  expect(forms.opened).toEqual([]);
});

test("a body beyond 128 KiB is refused, and one of exactly that is read", async () => {
  const { ask } = bed();
  const sized = (bytes: number) => {
    const body = { ...submission, values: { password: "" } };
    return { ...body, values: { password: "x".repeat(bytes - JSON.stringify(body).length) } };
  };
  expect((await ask("/submit", sized(128 * 1024 + 1))).status).toBe(413);
  // The scripted vault cannot open it, which is a failure of its own.
  expect((await ask("/submit", sized(128 * 1024))).status).toBe(503);
});
