import { afterEach, expect, test } from "vitest";
import { tokenOf } from "../../src/base/crypto/lease-token.js";
import { openEgress, rulesFor } from "../support/egress/egress-bed.js";
import { openOrigin } from "../support/egress/egress-origin.js";
import { bedSecret } from "../support/gateway/gateway-bed.js";
import { type GatewayBrowser, openGatewayBrowser } from "../support/gateway/gateway-browser.js";

const mebibyte = 2 ** 20;

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

async function open(): Promise<{
  browser: GatewayBrowser;
  ask(): Promise<{ status: number; code?: string }>;
}> {
  const body = Buffer.alloc(10 * mebibyte, "x");
  const origin = await openOrigin((_, reply) => void reply.end(body));
  closing.push(() => origin.close());
  const { egress } = await openEgress(rulesFor(["127.0.0.1"]));
  closing.push(() => egress.close());
  const limits = { curl: { browserBytes: 32 * mebibyte, daemonBytes: 64 * mebibyte } };
  const browser = await openGatewayBrowser(
    {},
    { limits, curl: (request, gone) => egress.fetch(request, gone) },
  );
  closing.push(() => browser.close());
  const { id } = browser.chromium;
  const url = `http://127.0.0.1:${browser.bed.port}/browsers/${id}/curl?token=${tokenOf(bedSecret, id, browser.bed.lease(id))}`;
  const asked = JSON.stringify({ url: `http://127.0.0.1:${origin.port}/`, timeout_ms: 60_000 });
  return {
    browser,
    async ask() {
      const answer = await fetch(url, { method: "POST", body: asked });
      const text = await answer.text();
      if (answer.status === 200) return { status: 200 };
      return { status: answer.status, code: (JSON.parse(text) as { code: string }).code };
    },
  };
}

test("150 requests for 10 MiB at once: what has room is answered, the rest is told to come later, and room comes back", async () => {
  const { ask } = await open();
  const before = process.memoryUsage.rss();
  const answers = await Promise.all(Array.from({ length: 150 }, ask));
  const grown = process.memoryUsage.rss() - before;
  const served = answers.filter(({ status }) => status === 200).length;
  const refused = answers.filter(({ status, code }) => status === 429 && code === "too_many_requests").length;
  expect(served).toBeGreaterThan(0);
  expect(served + refused).toBe(150);
  expect(refused).toBeGreaterThan(75);
  // The client's copies of what it was given are in it too.
  expect(grown).toBeLessThan(500 * mebibyte);
  expect(await ask()).toEqual({ status: 200 });
});
