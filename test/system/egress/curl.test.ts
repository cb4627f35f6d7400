import { createServer } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openSite, type Site } from "../../support/browser/chromium-site.js";
import { until } from "../../support/browser/chromium-until.js";
import { type Daemon, type Lease, startDaemon } from "../../support/daemon/daemon.js";
import { closeServer, listenLocally } from "../../support/egress/local-server.js";

let daemon: Daemon;
let site: Site;
beforeAll(async () => {
  [daemon, site] = await Promise.all([startDaemon(), openSite()]);
});
afterAll(async () => {
  await daemon.stop();
  await site.close();
});

const hostOf = (origin: string): string => new URL(origin).host;
const acquire = async (pool: string, body: object = {}): Promise<Lease> =>
  (await daemon.call(`POST /browser_pools/${pool}/acquire`, { acquire_timeout_seconds: 20, ...body }))
    .body as Lease;
const curl = (lease: Lease, url: string, more: object = {}) =>
  daemon.call(`POST /browsers/${lease.session_id}/curl`, { url, ...more });

test("curl sends what it is told, answers what came, and refuses what is no request", async () => {
  await daemon.makePool({ name: "curls" });
  const lease = await acquire("curls");
  const echo = await openEcho();
  const told = await curl(lease, `${echo.origin}/path?q=1`, {
    method: "put",
    headers: { "X-Own": "yes", Host: "evil.example" },
    body: "häh",
  });
  expect(told).toMatchObject({
    status: 200,
    body: { status: 207, headers: { "set-cookie": ["a=1", "b=2"] } },
  });
  expect(JSON.parse(told.body.body)).toMatchObject({
    method: "PUT",
    url: "/path?q=1",
    own: "yes",
    host: hostOf(echo.origin),
    body: "häh",
  });
  expect(told.body.duration_ms).toBeGreaterThanOrEqual(0);
  const binary = await curl(lease, `${echo.origin}/binary`, { response_encoding: "base64" });
  expect(Buffer.from(binary.body.body, "base64")).toEqual(Buffer.from([0, 255, 128]));
  expect((await curl(lease, `${site.origin}/moved`)).body).toMatchObject({
    status: 301,
    headers: { location: ["/elsewhere"] },
  });
  for (const [body, status] of [
    [{ url: "ftp://a.example/" }, 400],
    [{ url: "nonsense" }, 400],
    [{}, 400],
    [{ url: site.origin, method: "TRACE" }, 400],
    [{ url: site.origin, timeout_ms: 999 }, 400],
    [{ url: site.origin, headers: { "a b": "c" } }, 400],
    [{ url: "http://no-such-name.invalid/" }, 400],
    [{ url: "http://127.0.0.1:9/" }, 502],
  ] as const)
    expect([body, (await daemon.call(`POST /browsers/${lease.session_id}/curl`, body)).status]).toEqual([
      body,
      status,
    ]);
  const late = await curl(lease, `${echo.origin}/never`, { timeout_ms: 1000 });
  expect(late).toMatchObject({ status: 502, body: { code: "destination_failed" } });
  expect(await daemon.kernel().browsers.curl(lease.session_id, { url: site.origin })).toMatchObject({
    status: 200,
    body: expect.stringContaining("hello"),
  });
  expect((await daemon.call("POST /browsers/none/curl", { url: site.origin })).status).toBe(404);
  await echo.close();
});

test("curl over the browser's own URL needs the lease's token, and ends with the lease", async () => {
  await daemon.makePool({ name: "token" });
  const lease = await acquire("token");
  const echo = await openEcho();
  const direct = lease.cdp_ws_url.replace(/^ws/, "http").replace("/cdp?", "/curl?");
  const ask = (url: string, body: object): Promise<Response> =>
    fetch(url, { method: "POST", body: JSON.stringify(body) });
  expect(await (await ask(direct, { url: site.origin })).json()).toMatchObject({ status: 200 });
  expect((await ask(direct.replace(/token=.*/, "token=wrong"), { url: site.origin })).status).toBe(401);
  const pending = ask(direct, { url: `${echo.origin}/never`, timeout_ms: 60_000 });
  await until("the request's arrival", () => echo.asked.includes("/never"));
  await daemon.call("POST /browser_pools/token/release", { session_id: lease.session_id });
  expect((await pending).status).toBe(410);
  expect((await ask(direct, { url: site.origin })).status).toBe(410);
  await echo.close();
});

interface Listening {
  readonly origin: string;
  readonly asked: string[];
  close(): Promise<void>;
}

/** Says what it was sent; `/never` is not answered. */
async function openEcho(): Promise<Listening> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? "");
    if (request.url === "/never") return;
    if (request.url === "/binary") return void response.end(Buffer.from([0, 255, 128]));
    let body = "";
    request
      .setEncoding("utf8")
      .on("data", (text: string) => (body += text))
      .on("end", () => {
        const { method, url, headers } = request;
        response
          .writeHead(
            207,
            [
              ["set-cookie", "a=1"],
              ["set-cookie", "b=2"],
            ].flat(),
          )
          .end(JSON.stringify({ method, url, own: headers["x-own"], host: headers.host, body }));
      });
  });
  return { origin: `http://${await listenLocally(server)}`, asked, close: () => closeServer(server) };
}
