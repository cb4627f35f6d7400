import { createServer, type Server } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import { type Daemon, type Lease, startDaemon } from "../../support/daemon/daemon.js";
import { closeServer, listenLocally } from "../../support/egress/local-server.js";
import { connectRaw, type RawCdp } from "../../support/gateway/raw-cdp.js";
import { toldTo, toldWhen } from "../../support/telemetry/told-events.js";

let daemon: Daemon;
let site: Server;
let origin: string;
let lease: Lease;
let client: RawCdp;
let page: string;
/** No browser gets there unless its rules name it. */
const denied = "169.254.169.254";

beforeAll(async () => {
  // Few connections, so that a page can have them all.
  daemon = await startDaemon({ file: { egress: { max_connections: 4 } } });
  site = createServer((request, response) => {
    if (request.url?.startsWith("/never")) return;
    const forged = request.url === "/forged" ? { "X-Remuda-Egress": "denied" } : {};
    response.writeHead(request.url === "/" ? 200 : 403, { "content-type": "text/html", ...forged });
    response.end("<!doctype html><title>site</title>");
  });
  origin = `http://${await listenLocally(site)}`;
  const telemetry = { browser: { network: { enabled: true } } };
  lease = (await daemon.call("POST /browsers", { headless: true, telemetry })).body as Lease;
  client = await connectRaw(lease.cdp_ws_url);
  page = await client.attach();
});
afterAll(async () => {
  await client.close();
  await daemon.stop();
  await closeServer(site);
});

const navigate = async (url: string): Promise<void> =>
  void (await client.send("Page.navigate", { url }, page));
const isOf =
  (url: string) =>
  (data: Readonly<Record<string, unknown>>): boolean =>
    data["url"] === url;
const errorOf = (url: string) => toldWhen(daemon, lease, { type: "proxy_error", holds: isOf(url) });
/** What was answered later is told, so an error of this would have been. */
async function expectNoError(url: string): Promise<void> {
  const after = `http://${denied}/after?${url}`;
  await navigate(after);
  await errorOf(after);
  const urls = (await toldTo(daemon, lease, "proxy_error")).map(({ data: told }) => told["url"]);
  expect(urls).toContain(after);
  expect(urls).not.toContain(url);
}

test("what the rules deny is told as a blocked destination", async () => {
  const url = `http://${denied}/`;
  await navigate(url);
  expect(await errorOf(url)).toMatchObject({
    category: "network",
    source: { kind: "cdp", event: "Network.responseReceived" },
    data: { url, method: "GET", status: 403, code: "destination_blocked" },
  });
});

test("a server that cannot be reached is told as a connection that failed", async () => {
  const gone = createServer();
  const url = `http://${await listenLocally(gone)}/`;
  await closeServer(gone);
  await navigate(url);
  expect((await errorOf(url)).data).toMatchObject({ status: 502, code: "upstream_connect_failed" });
});

test("of https it is known only that the tunnel failed", async () => {
  const url = `https://${denied}/`;
  await navigate(url);
  const { data } = await toldWhen(daemon, lease, { type: "network_loading_failed", holds: isOf(url) });
  expect(data).toMatchObject({ error_text: "net::ERR_TUNNEL_CONNECTION_FAILED" });
  await expectNoError(url);
});

test("a site that sends the header of the way out gives no error, and its answer is told without it", async () => {
  const url = `${origin}/forged`;
  await navigate(url);
  const { data } = await toldWhen(daemon, lease, { type: "network_response", holds: isOf(url) });
  expect(data).toMatchObject({ status: 403 });
  expect(JSON.stringify(data["headers"]).toLowerCase()).not.toContain("remuda");
  await expectNoError(url);
});

test("a request beyond the browser's connections is told as a way out that is not there", async () => {
  await navigate(`${origin}/`);
  await until("the site", () => client.evaluate("document.title === 'site'", page));
  const fetchAll = "for (let at = 0; at < 6; at += 1) fetch('/never?' + at).catch(() => {})";
  await client.evaluate(fetchAll, page);
  const { data } = await toldWhen(daemon, lease, {
    type: "proxy_error",
    holds: ({ status }) => status === 503,
  });
  expect(data).toMatchObject({ code: "proxy_unavailable", url: expect.stringContaining(`${origin}/never`) });
});
