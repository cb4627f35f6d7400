import { createServer, type Server } from "node:http";
import { connect } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { systemClock } from "../../src/base/clock.js";
import { attest } from "../../src/browser/attestation.js";
import { Cdp } from "../../src/browser/cdp/cdp.js";
import type { BrowserProxy } from "../../src/browser/chromium.js";
import type { BrowserHost } from "../../src/browser/host.js";
import { closedRules, type Rules } from "../../src/egress/rules.js";
import {
  localRules,
  openListener,
  openTestEgress,
  publicRules,
  type TestEgress,
  type Tier,
  tiers,
} from "../support/browser/browser-egress.js";
import { takeCensus } from "../support/browser/chromium-census.js";
import { openTestHost } from "../support/browser/chromium-host.js";
import { kinds } from "../support/browser/chromium-kinds.js";
import { makeLauncher } from "../support/browser/chromium-launcher.js";
import { openSite, type Site } from "../support/browser/chromium-site.js";

let host: BrowserHost;
let site: Site;
const opened: { close(): unknown }[] = [];
beforeAll(async () => {
  [host, site] = await Promise.all([openTestHost(), openSite()]);
});
const { launch, killAll } = makeLauncher(() => host);
afterEach(async () => {
  await killAll();
  await Promise.all(opened.splice(0).map((each) => each.close()));
});
afterAll(() => Promise.all([host.close(), site.close()]));

async function openBrowserEgress(tier: Tier, rules: Rules): Promise<TestEgress> {
  const made = await openTestEgress(tier, rules, host);
  opened.push(made.egress);
  return made;
}

/** The proxy, with everything that the browser has to prove of it. */
const proving = ({ egress, proxy }: TestEgress, allowed?: string): BrowserProxy => ({
  ...proxy,
  attesting: { usage: () => egress.usage(), ...(allowed !== undefined && { allowed }) },
});

const failure = "the browser's egress is not attested";

describe.each(tiers)("in the %s tier", (tier) => {
  test.each(kinds)(
    "%s proves that its egress holds it, and looks as if nobody had asked",
    async (_name, given) => {
      const made = await openBrowserEgress(tier, publicRules);
      const chromium = await launch({ ...given, egress: proving(made) });
      expect(chromium.attestation).toEqual({
        at: expect.stringMatching(/^\d{4}-.*Z$/) as string,
        denied: true,
      });
      expect(made.egress.usage().denied).toMatchObject({ metadata: 1, remuda: 1 });
      expect(chromium.isolation.network).toBe(tier);
      expect(await chromium.reset(100_000)).toEqual({ differences: [] });
    },
  );

  test("what the operator says must be reached is reached", async () => {
    const chromium = await launch({
      egress: proving(await openBrowserEgress(tier, localRules), `${site.origin}/allowed`),
    });
    expect(chromium.attestation).toMatchObject({ denied: true, allowed: true });
    expect(site.requests).toContain("/allowed");
  });

  test("a launch fails where it is not, and leaves nothing", async () => {
    const made = await openBrowserEgress(tier, publicRules);
    await expect(launch({ egress: proving(made, `${site.origin}/closed`) })).rejects.toMatchObject({
      stage: "egress",
      message: expect.stringContaining(`${failure}: what it has to allow was not reached`) as string,
    });
    expect(site.requests).not.toContain("/closed");
    const { processes, directories } = await takeCensus(host.scratchDirectory, new Set());
    expect([...processes, ...directories]).toEqual([]);
  });

  test("a running browser proves it again under other rules, with a page open", async () => {
    const made = await openBrowserEgress(tier, localRules);
    const chromium = await launch({ egress: made.proxy });
    expect(chromium.attestation).toBeUndefined();
    await chromium.navigate(`${site.origin}/page`);
    await made.egress.apply(closedRules);
    const attestation = await chromium.attest({ usage: () => made.egress.usage() }, 20_000);
    expect(attestation).toMatchObject({ denied: true });
    expect(chromium.attestation).toBe(attestation);
  });

  test("a proxy that is not its egress does not pass for it, whatever it answers", async () => {
    const counted = { denied: 0 };
    const asking = { usage: () => ({ denied: { remuda: counted.denied } }) };
    const proxies: Record<string, Server> = {
      // Answers like an egress, but the egress does not know of it.
      "it did not see what was denied": createServer((_, response) =>
        response.writeHead(403, { "x-remuda-egress": "denied" }).end(),
      ),
      "what it has to deny was answered otherwise": createServer(
        (_, response) => ((counted.denied += 1), response.writeHead(403).end()),
      ),
      // Carries on whatever is asked of it.
      "a request went past it": createServer((request, response) => {
        const { port, pathname } = new URL(request.url ?? "");
        if (port !== "")
          connect(Number(port), "127.0.0.1")
            .end(`GET ${pathname} HTTP/1.0\r\n\r\n`)
            .once("close", () => response.writeHead(403, { "x-remuda-egress": "denied" }).end())
            .resume();
        else response.writeHead(403, { "x-remuda-egress": "denied" }).end();
      }),
    };
    for (const [reason, server] of Object.entries(proxies)) {
      const listener = await openListener(tier);
      await listener.listen(server);
      opened.push({ close: () => (server.closeAllConnections(), server.close(), listener.close()) });
      const { proxyUrl, namespace } = listener;
      await expect(
        launch({ egress: { proxyUrl, ...(namespace !== undefined && { namespace }), attesting: asking } }),
      ).rejects.toThrow(`${failure}: ${reason}`);
    }
  });
});

test("a browser that has no proxy at all is found out", async () => {
  const { egress } = await openBrowserEgress("proxy", publicRules);
  await expect(
    launch({ egress: { proxyUrl: "direct://", attesting: { usage: () => egress.usage() } } }),
  ).rejects.toThrow(`${failure}: what it has to deny was answered otherwise: net::ERR_NAME_NOT_RESOLVED`);
});

test.runIf(tiers.includes("namespace"))(
  "a browser outside its namespace is found out, though its proxy holds it",
  async () => {
    const { egress, proxy } = await openBrowserEgress("proxy", publicRules);
    const chromium = await launch({ egress: proxy });
    const elsewhere = await openListener("namespace");
    opened.push(elsewhere);
    const cdp = new Cdp(chromium.pipe, systemClock);
    const { targetInfos } = await cdp.send("Target.getTargets", {});
    const page = targetInfos.find(({ type }) => type === "page")?.targetId ?? "";
    const { namespace = "" } = elsewhere;
    const attested = {
      cdp,
      clock: systemClock,
      page,
      pid: chromium.pid,
      canary: host.canary,
      namespace: undefined,
    };
    const asking = { usage: () => egress.usage() };
    expect(await attest(attested, asking, 20_000)).toMatchObject({ denied: true });
    await expect(attest({ ...attested, namespace }, asking, 20_000)).rejects.toThrow(
      `${failure}: it is not in its network namespace`,
    );
  },
);

test("the canary distinguishes its own path from every other request", async () => {
  const canaryPath = host.canary.openPath();
  await fetch(`http://127.0.0.1:${host.canary.port}/scan`);
  expect(canaryPath.wasTouched()).toBe(false);
  await fetch(canaryPath.url);
  expect(canaryPath.wasTouched()).toBe(true);
  canaryPath.close();
});
