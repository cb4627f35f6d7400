import type { TLSSocket } from "node:tls";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { BrowserHost } from "../../../src/browser/host.js";
import { PipeClient } from "../../support/browser/chromium-client.js";
import { openTestHost } from "../../support/browser/chromium-host.js";
import { engines } from "../../support/browser/chromium-kinds.js";
import { makeLauncher } from "../../support/browser/chromium-launcher.js";
import { until } from "../../support/browser/chromium-until.js";
import { openSecureSite, type SecureSite } from "../../support/egress/egress-secure-site.js";

let host: BrowserHost;
let site: SecureSite;
/** Whether the connection of each request went on with a session of before. */
const resumed: boolean[] = [];
beforeAll(async () => {
  host = await openTestHost();
  site = await openSecureSite("127.0.0.1", ({ socket }, response) => {
    resumed.push((socket as TLSSocket).isSessionReused());
    response.writeHead(200, { "content-type": "text/html", connection: "close" });
    response.end("<!doctype html><link rel=icon href='data:,'>");
  });
});
const { launch, killAll } = makeLauncher(() => host);
beforeEach(() => void resumed.splice(0));
afterAll(async () => {
  await killAll();
  await Promise.all([host.close(), site.close()]);
});

/** The error of a visit in a page of its own, undefined where it had none. */
async function visit(client: PipeClient, isIgnoring: boolean): Promise<string | undefined> {
  const { targetId } = await client.send("Target.createTarget", { url: "about:blank" });
  const session = await client.attach(targetId as string);
  if (isIgnoring) await client.send("Security.setIgnoreCertificateErrors", { ignore: true }, session);
  const fault = await client.open(`${site.origin}/`, session);
  await client.send("Target.detachFromTarget", { sessionId: session });
  return fault;
}

const invalid = "net::ERR_CERT_AUTHORITY_INVALID";

describe.each(engines)("%s after a reset", (_name, given) => {
  afterAll(killAll);

  test("a site is met by no TLS session of before, and keeps those of now", async () => {
    const chromium = await launch(given);
    const client = new PipeClient(chromium);
    const isResumed = async (): Promise<boolean> => {
      await visit(client, true);
      return resumed.at(-1) ?? false;
    };
    await until("a TLS session that goes on", isResumed);
    await client.send("Memory.setPressureNotificationsSuppressed", { suppressed: true });
    expect(await chromium.reset(100_000)).toEqual({ differences: [] });
    resumed.splice(0);
    await visit(client, true);
    expect(resumed[0]).toBe(false);
    await until("a TLS session of the next holder that goes on", isResumed);
  });

  test("errors of certificates that a client has ignored are errors again", async () => {
    const chromium = await launch(given);
    const client = new PipeClient(chromium);
    expect(await visit(client, true)).toBe(undefined);
    expect(await chromium.reset(100_000)).toEqual({ differences: [] });
    expect(await visit(client, false)).toBe(invalid);
  });
});

/** Passes the warning of a page that Chromium shows instead of the site; false where there is no way. */
async function accept(client: PipeClient): Promise<boolean> {
  const { targetId } = await client.send("Target.createTarget", { url: "about:blank" });
  const session = await client.attach(targetId as string);
  expect(await client.open(`${site.origin}/`, session)).toBe(invalid);
  const link = "document.getElementById('proceed-link')";
  await until("the warning", () =>
    client.evaluate("document.getElementById('details-button') !== null", session),
  );
  await client.evaluate("document.getElementById('details-button').click()", session);
  const hasLink = await client.evaluate(`(${link}?.offsetParent ?? null) !== null`, session);
  // Later than the answer, which a page that goes elsewhere meanwhile would not give.
  await client.evaluate(`void setTimeout(() => ${link}?.click())`, session);
  if (hasLink) await until("the site", () => resumed.length > 0);
  return Boolean(hasLink);
}

describe.each(engines.filter(([, { engine }]) => engine === "chromium"))("%s", (_name, given) => {
  afterAll(killAll);

  test("remembers a certificate that was accepted, so nobody can where another holder comes", async () => {
    const remembering = new PipeClient(await launch({ ...given, isForOne: true }));
    expect(await accept(remembering)).toBe(true);
    expect(await visit(remembering, false)).toBe(undefined);
    resumed.splice(0);
    const client = new PipeClient(await launch(given));
    expect(await accept(client)).toBe(false);
    expect(await visit(client, false)).toBe(invalid);
    expect(resumed).toEqual([]);
  });

  test.each([
    { SSLErrorOverrideAllowed: true },
    { SSLErrorOverrideAllowedForOrigins: ["https://127.0.0.1"] },
  ])("is replaced where a policy lets certificates be accepted: %j", async (policy) => {
    const chromium = await launch({ ...given, policy });
    expect(await chromium.reset(100_000)).toEqual({
      differences: ["policy: certificates that were accepted are remembered"],
    });
  });
});
