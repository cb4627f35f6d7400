import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished } from "vitest";
import { until } from "../support/browser/chromium-until.js";
import type { Lease } from "../support/daemon/daemon.js";
import { startDns } from "../support/egress/dns-server.js";
import { connectRaw, type RawCdp } from "../support/gateway/raw-cdp.js";
import { useFaultBed } from "../support/faults/bed.js";
import { fault, startWatch } from "../support/faults/fault.js";

const bed = useFaultBed();
const names = Array.from({ length: 200 }, (_, nth) => `n${nth}.example`);

const ask = (name: string): string => `fetch("http://${name}/").then(({ status }) => status, () => "failed")`;

async function startSite(): Promise<string> {
  const site = createServer((_, response) =>
    response.setHeader("access-control-allow-origin", "*").end("<title>here</title>"),
  ).listen(0, "127.0.0.1");
  await once(site, "listening");
  onTestFinished(() => void (site.close(), site.closeAllConnections()));
  return `http://127.0.0.1:${(site.address() as AddressInfo).port}/`;
}

fault("DNS answers nothing: pages wait for names in vain, and for nothing else", async (tell) => {
  const dns = await startDns(Object.fromEntries(names.map((name) => [name, "silent"])));
  onTestFinished(() => dns.close());
  const [control, site] = [await bed.start("control"), await startSite()];
  const node = await bed.start("node", { egress: { resolvers: [dns.server], connect_limit_seconds: 3 } });
  await control.makePool({ name: "herd", size: 3, headless: true });
  const acquire = async (): Promise<{ client: RawCdp; page: string }> => {
    const { body } = await control.call("POST /browser_pools/herd/acquire", { acquire_timeout_seconds: 30 });
    const client = await connectRaw((body as Lease).cdp_ws_url);
    const page = await client.attach();
    await client.send("Page.navigate", { url: site }, page);
    await until("the site", () =>
      client.evaluate("document.readyState === 'complete' && document.title === 'here'", page),
    );
    return { client, page };
  };
  const [one, many] = [await acquire(), await acquire()];
  const watch = startWatch();
  const failed = one.client.send("Page.navigate", { url: "https://n0.example/" }, one.page);
  const asked = many.client.evaluate(`Promise.all([${names.map(ask).join(",")}])`, many.page);
  // Meanwhile another browser is lent, it reaches an address, and clients are answered.
  const other = await acquire();
  expect(await other.client.evaluate(`fetch("${site}").then(({ status }) => status)`, other.page)).toBe(200);
  expect(await one.client.send("Browser.getVersion")).toHaveProperty("result");
  const { result } = await failed;
  expect(result).toMatchObject({ errorText: "net::ERR_TUNNEL_CONNECTION_FAILED" });
  const failedMs = watch.since();
  expect(await asked).toEqual(names.map(() => "failed"));
  for (const name of names) dns.set(name, ["127.0.0.1"]);
  const healed = startWatch();
  const named = new URL(site).host.replace("127.0.0.1", "n0.example");
  await until("the name", async () => (await other.client.evaluate(ask(named), other.page)) === 200);
  expect(node.log).not.toContain("daemon failed");
  const saw = `ERR_TUNNEL_CONNECTION_FAILED after ${(failedMs / 1000).toFixed(1)} s; addresses, leases and sockets went on`;
  tell({ saw, recoveryMs: healed.since() });
});
