import { createSocket } from "node:dgram";
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Chromium, LaunchSpec } from "../../src/browser/chromium.js";
import type { BrowserHost } from "../../src/browser/host.js";
import type { Rules } from "../../src/egress/rules.js";
import {
  localRules,
  openTestEgress,
  publicRules,
  type TestEgress,
  type Tier,
  tiers,
} from "../support/browser/browser-egress.js";
import { PipeClient } from "../support/browser/chromium-client.js";
import { openTestHost } from "../support/browser/chromium-host.js";
import { kinds } from "../support/browser/chromium-kinds.js";
import { makeLauncher } from "../support/browser/chromium-launcher.js";
import { openSite, type Site } from "../support/browser/chromium-site.js";
import { until } from "../support/browser/chromium-until.js";

/** Where browsers of any uid can read. */
const work = mkdtempSync("/var/tmp/remuda-test-extensions-");
let host: BrowserHost;
let site: Site;
const opened: TestEgress[] = [];
beforeAll(async () => {
  chmodSync(work, 0o755);
  [host, site] = await Promise.all([openTestHost({ readablePaths: [work] }), openSite()]);
});
const { launch, killAll } = makeLauncher(() => host);
afterEach(async () => {
  await killAll();
  await Promise.all(opened.splice(0).map(({ egress }) => egress.close()));
  site.requests.length = 0;
});
afterAll(async () => {
  await Promise.all([host.close(), site.close()]);
  rmSync(work, { recursive: true });
});

interface Guarded {
  readonly chromium: Chromium;
  readonly client: PipeClient;
  readonly egress: TestEgress["egress"];
}

async function guarded(tier: Tier, given: Partial<LaunchSpec>, rules: Rules = localRules): Promise<Guarded> {
  const made = await openTestEgress(tier, rules, host);
  opened.push(made);
  const chromium = await launch({ ...given, egress: made.proxy });
  return { chromium, client: new PipeClient(chromium), egress: made.egress };
}

/**
 * Opens a page in a context with a proxy of its own, as no client gets past the gate with; tells the failure.
 */
async function openDirectly(client: PipeClient, url: string): Promise<string | undefined> {
  const { browserContextId } = await client.send("Target.createBrowserContext", { proxyServer: "direct://" });
  const { targetId } = await client.send("Target.createTarget", { url: "about:blank", browserContextId });
  return client.open(url, await client.attach(String(targetId)));
}

describe.each(tiers)("in the %s tier", (tier) => {
  test.each(kinds)(
    "%s opens pages through its egress and nothing else, and thinks itself online",
    async (_name, given) => {
      const { chromium, client, egress } = await guarded(tier, given);
      expect(chromium.isolation.network).toBe(tier);
      const session = await client.attach();
      expect(await client.open(`${site.origin}/page`, session)).toBeUndefined();
      expect(site.requests).toContain("/page");
      expect(egress.usage().requests).toBeGreaterThan(0);
      expect(await client.evaluate("navigator.onLine", session)).toBe(true);
      await egress.apply(publicRules);
      await client.evaluate(
        `Promise.allSettled(["${site.origin}/direct", "${site.otherOrigin}/direct"].map((url) => fetch(url, { mode: "no-cors" })))`,
        session,
      );
      expect(site.requests).not.toContain("/direct");
      expect(egress.usage().denied.private).toBeGreaterThanOrEqual(2);
    },
  );

  test.each(kinds)("WebRTC of %s sends no datagram", async (_name, given) => {
    const listener = createSocket("udp4");
    const heard: string[] = [];
    listener.on("message", (message) => heard.push(message.toString("latin1")));
    await new Promise<void>((resolve) => void listener.bind(0, "127.0.0.1", resolve));
    const { client } = await guarded(tier, given);
    const gather = (servers: string): string => `new Promise(async (resolve) => {
      const peer = new RTCPeerConnection({ iceServers: [{ urls: ${servers}, username: "u", credential: "c" }] });
      peer.onicegatheringstatechange = () => peer.iceGatheringState === "complete" && resolve("complete");
      peer.createDataChannel("x");
      await peer.setLocalDescription(await peer.createOffer());
    })`;
    const { port } = listener.address();
    expect(
      await client.evaluate(
        gather(`["stun:127.0.0.1:${port}", "turn:127.0.0.1:${port}?transport=udp"]`),
        await client.attach(),
      ),
    ).toBe("complete");
    expect(heard).toEqual([]);
    listener.close();
  });

  const extensible = kinds.filter(([, { engine }]) => engine === "chromium");
  test.each(extensible)(
    "%s loads an extension, and none that asks for what leads past its egress",
    async (_name, given) => {
      const { client } = await guarded(tier, given);
      const load = async (asked: object): Promise<string> => {
        const path = await mkdtemp(join(work, "x"));
        await chmod(path, 0o755);
        await writeFile(join(path, "app.js"), "");
        await writeFile(
          join(path, "manifest.json"),
          JSON.stringify({ manifest_version: 3, name: "x", version: "1", ...asked }),
        );
        return client
          .send("Extensions.loadUnpacked", { path })
          .then(
            () => "loaded",
            (error: Error) => error.message,
          )
          .finally(() => rm(path, { recursive: true }));
      };
      expect(await load({ permissions: ["storage"] })).toBe("loaded");
      const app = {
        manifest_version: 2,
        app: { background: { scripts: ["app.js"] } },
        sockets: { tcp: { connect: "*" }, udp: { send: "*" } },
      };
      expect(await load(app)).toContain("is blocked by the administrator");
      for (const permission of ["proxy", "privacy", "debugger", "nativeMessaging", "dns"]) {
        expect(await load({ permissions: [permission] }), permission).toContain(
          "is blocked by the administrator",
        );
      }
    },
  );
});

// What the gate refuses, sent past it: the namespace holds where switches, policy and gate do not.
describe.runIf(tiers.includes("namespace")).each(kinds)(
  "no command leads %s out of its namespace",
  (_name, given) => {
    test("not a context that wants to connect directly", async () => {
      const { client } = await guarded("namespace", given);
      const failure = await openDirectly(client, `${site.origin}/direct`);
      expect(failure).toMatch(/^net::ERR_(?:CONNECTION_REFUSED|ADDRESS_UNREACHABLE)$/);
      expect(site.requests).toEqual([]);
    });

    test("not a list of remote locations", async () => {
      const { client } = await guarded("namespace", given);
      const { touched, close, port } = await openListener();
      await client
        .send("Target.setRemoteLocations", { locations: [{ host: "127.0.0.1", port }] })
        .catch(() => {});
      await client.send("Target.setDiscoverTargets", { discover: true });
      // Waits as long as it takes to go past the egress where only that stands in the way, see below.
      await client.evaluate("new Promise((resolve) => setTimeout(resolve, 2_000))", await client.attach());
      expect(touched()).toBe(0);
      await close();
    });
  },
);

describe("without a namespace both lead to the address of its proxy, and to no other; the gate refuses them", () => {
  const given: Partial<LaunchSpec> = { engine: "chromium", headless: true };

  test("a context that wants to connect directly", async () => {
    const { client, egress } = await guarded("proxy", given, publicRules);
    const before = egress.usage().requests;
    expect(await openDirectly(client, `${site.origin}/direct`)).toBe("net::ERR_NAME_NOT_RESOLVED");
    expect(site.requests).not.toContain("/direct");
    const { touched, close, port } = await openListener(new URL(egress.proxyUrl).hostname);
    await openDirectly(client, `http://${new URL(egress.proxyUrl).hostname}:${port}/`);
    expect(touched()).toBeGreaterThan(0);
    expect(egress.usage().requests).toBe(before);
    await close();
  });

  test("a list of remote locations", async () => {
    const { client, egress } = await guarded("proxy", given, publicRules);
    const { hostname } = new URL(egress.proxyUrl);
    const { touched, close, port } = await openListener(hostname);
    await client.send("Target.setRemoteLocations", { locations: [{ host: hostname, port }] });
    await until("a connection past the egress", () => touched() > 0);
    await close();
  });
});

async function openListener(
  address = "127.0.0.1",
): Promise<{ port: number; touched: () => number; close: () => Promise<unknown> }> {
  let count = 0;
  const server = createServer((socket) => {
    count += 1;
    socket.destroy();
  });
  server.listen(0, address);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return { port, touched: () => count, close: () => new Promise((resolve) => void server.close(resolve)) };
}
