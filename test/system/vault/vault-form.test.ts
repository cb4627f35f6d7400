import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { chromium } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Daemon, type Lease, startDaemon } from "../../support/daemon/daemon.js";

/** The form's own port is closed to browsers of a pool: they reach it by a proxy, as people do. */
let proxy: Server;
let formPort = 0;
let url = "";
let daemon: Daemon;
beforeAll(async () => {
  proxy = createServer((incoming, outgoing) => {
    const { method, headers, url: path } = incoming;
    const onward = request(
      {
        port: formPort,
        host: "127.0.0.1",
        method,
        path,
        headers: { ...headers, "x-forwarded-for": "198.51.100.7" },
      },
      (answer) => answer.pipe(outgoing.writeHead(answer.statusCode ?? 502, answer.headers)),
    );
    incoming.pipe(onward);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  const server = { trusted_proxies: ["127.0.0.0/8"] };
  daemon = await startDaemon({ file: { server, vault: { form: { public_url: url } } } });
  formPort = Number(/"port":(\d+)[^\n]*"msg":"collection form listening"/.exec(daemon.log)?.[1]);
});
afterAll(async () => {
  await daemon.stop();
  proxy.closeAllConnections();
  proxy.close();
});

const login = {
  type: "credential",
  spec: {
    provider: "native",
    description: "Shop",
    fields: [
      { name: "user", type: "email", sensitive: false, value: "me@shop.example" },
      { name: "password", type: "password" },
    ],
  },
};
const path = "/vaults/logins/items/shop";

test("a person enters what is missing in a browser of a pool, and the link is used", async () => {
  await daemon.call("POST /vaults", { name: "logins" });
  const { body: item } = await daemon.call(`PUT ${path}`, login);
  const link = String(item.action.url);
  expect(link.startsWith(`${url}/#token=`)).toBe(true);
  const { body: lease } = await daemon.call("POST /browsers", { headless: true });
  const browser = await chromium.connectOverCDP((lease as Lease).cdp_ws_url);
  const [context] = browser.contexts();
  const page = await context?.newPage();
  if (!page) throw new Error("the browser has no page");
  await page.goto(link);
  await page.getByRole("heading", { name: "Shop", exact: true }).waitFor();
  expect(await page.getByLabel("user", { exact: true }).inputValue()).toBe("me@shop.example");
  await page.getByLabel("user", { exact: true }).fill("you@shop.example");
  await page.getByLabel("password", { exact: true }).fill("a password of nobody's");
  // Asked only now: how long a browser takes to get here is no part of the wait.
  const waiting = daemon.call(`GET ${path}?wait=60`);
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByRole("heading", { name: "Saved", exact: true }).waitFor();
  expect(await waiting).toMatchObject({
    status: 200,
    body: {
      version: 2,
      state: {
        status: "ready",
        fields: { user: { value: "you@shop.example" }, password: { has_value: true } },
      },
    },
  });
  await page.goto("about:blank");
  await page.goto(link);
  await page.getByRole("heading", { name: "This link has been used" }).waitFor();
  // The form's own port is one of Remuda's, which no browser reaches.
  const direct = await page.goto(`http://127.0.0.1:${formPort}/`).then(
    (answer) => answer?.status(),
    () => "refused",
  );
  expect(direct).not.toBe(200);
  await browser.close();
  await daemon.call(`DELETE /browsers/${lease.session_id}`);
  expect(daemon.log).not.toContain(link.split("=")[1]);
  expect(daemon.log).not.toContain("a password of nobody's");
});

test("a link is replaced by a change of its item, and what was done by a link is in the audit log", async () => {
  const { body: item } = await daemon.call(`POST ${path}/operations`, { type: "collect" });
  const token = String(item.action.url).split("token=")[1];
  const ask = (question: string, body: object) =>
    fetch(`${url}/${question}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ token, ...body }),
    });
  expect((await ask("open", {})).status).toBe(200);
  const update = { type: "credential", version: 2, spec: { fields: { password: { value: "another" } } } };
  expect((await daemon.call(`PATCH ${path}`, update)).status).toBe(200);
  const late = await ask("submit", { version: 2, values: {} });
  expect([late.status, await late.json()]).toEqual([409, { state: "replaced" }]);
  await daemon.call(`DELETE ${path}`);
  const gone = await ask("open", {});
  expect([gone.status, await gone.json()]).toEqual([404, { state: "gone" }]);
  const start = new Date(Date.now() - 3_600_000).toISOString();
  const end = new Date(Date.now() + 3_600_000).toISOString();
  const listed = async () => {
    const got = await daemon.call(`GET /audit-logs?start=${start}&end=${end}&auth_strategy=form`);
    return (got.body as { route: string; status: number; client_ip: string }[]).map((entry) => [
      entry.route,
      entry.status,
      entry.client_ip,
    ]);
  };
  await expect.poll(listed).toEqual(
    expect.arrayContaining([
      ["/submit", 200, "198.51.100.7"],
      ["/submit", 409, "198.51.100.7"],
      ["/open", 404, "198.51.100.7"],
    ]),
  );
});
