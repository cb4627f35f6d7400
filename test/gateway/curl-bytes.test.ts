import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { turns } from "../../src/base/fair-turns.js";
import { tokenOf } from "../../src/base/crypto/lease-token.js";
import { answerCurl } from "../../src/gateway/curl.js";
import type { GatewayLimits } from "../../src/gateway/limits.js";
import { until } from "../support/browser/chromium-until.js";
import { DrivenClock } from "../support/driven-clock.js";
import { openEgress, rulesFor } from "../support/egress/egress-bed.js";
import { openOrigin } from "../support/egress/egress-origin.js";
import { bedSecret } from "../support/gateway/gateway-bed.js";
import { type GatewayBrowser, openGatewayBrowser } from "../support/gateway/gateway-browser.js";

const mebibyte = 2 ** 20;

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

async function open({ letter = "x", ...more }: Partial<GatewayLimits> & { letter?: string } = {}): Promise<{
  browser: GatewayBrowser;
  url: string;
  asked: string;
  ask(): Promise<{ status: number; code?: string }>;
}> {
  const body = Buffer.alloc(10 * mebibyte, letter);
  const origin = await openOrigin((_, reply) => void reply.end(body));
  closing.push(() => origin.close());
  const { egress } = await openEgress(rulesFor(["127.0.0.1"]));
  closing.push(() => egress.close());
  const limits = { curl: { browserBytes: 32 * mebibyte, daemonBytes: 64 * mebibyte }, ...more };
  const browser = await openGatewayBrowser(
    {},
    { limits, curl: (wanted, gone) => egress.fetch(wanted, gone) },
  );
  closing.push(() => browser.close());
  const { id } = browser.chromium;
  const url = `http://127.0.0.1:${browser.bed.port}/browsers/${id}/curl?token=${tokenOf(bedSecret, id, browser.bed.lease(id))}`;
  const asked = JSON.stringify({ url: `http://127.0.0.1:${origin.port}/`, timeout_ms: 60_000 });
  return {
    browser,
    url,
    asked,
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

/** Asks, and reads no more than the head of the answer. */
async function askWithoutReading(
  to: string | { readonly socketPath: string },
  asked: string,
): Promise<IncomingMessage> {
  const options = { method: "POST", agent: false } as const;
  const asking = typeof to === "string" ? request(to, options) : request({ ...to, ...options });
  asking.on("error", () => {}).end(asked);
  const [reply] = (await once(asking, "response")) as [IncomingMessage];
  closing.push(async () => void reply.on("error", () => {}).destroy());
  return reply;
}

test("a caller who stops reading is cut, and the lease is in use no more", async () => {
  // Six times as long in JSON, which is more than the kernel takes.
  const { browser, url, asked } = await open({ letter: "\u0001", holdMs: 300 });
  const { activity } = browser.bed.local(browser.chromium.id);
  const reply = await askWithoutReading(url, asked);
  expect(activity.hasVisitors).toBe(true);
  await until("it is cut", () => !activity.hasVisitors);
  const broken = new Promise((resolve) => void reply.once("error", resolve));
  reply.resume();
  expect(await broken).toMatchObject({ code: "ECONNRESET" });
});

test("a caller who reads a part of a piece between two looks has all of it", async () => {
  const clock = new DrivenClock();
  const body = Buffer.alloc(2 * mebibyte, "\u0001");
  const curled = { status: 200, headers: {}, body, encoding: "utf8", duration_ms: 1 } as const;
  // On a Unix socket the kernel takes more when some 160 KiB were read; over TCP on loopback, 1 MiB or more.
  const server = createServer(
    (_, response) =>
      void answerCurl(response, curled, { turn: turns.open({ share: 1 }), clock, holdMs: 1000 }),
  );
  const directory = await mkdtemp(join(tmpdir(), "remuda-curl-"));
  closing.push(() => rm(directory, { recursive: true }));
  const socketPath = join(directory, "socket");
  await once(server.listen(socketPath), "listening");
  closing.push(async () => void server.close().closeAllConnections());
  const reply = await askWithoutReading({ socketPath }, "");
  // A third of a piece.
  const stepBytes = 128 * 1024;
  let [bytes, looks] = [0, 0];
  for await (const piece of reply as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes < (looks + 1) * stepBytes) continue;
    looks += 1;
    await clock.advance(500);
  }
  expect(bytes).toBeGreaterThan(6 * body.length);
  await until("it is watched no more", () => clock.pending === 0);
});
