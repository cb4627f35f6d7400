import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import { afterEach, expect, test } from "vitest";
import { tokenOf } from "../../src/base/crypto/lease-token.js";
import { openEgress, rulesFor } from "../support/egress/egress-bed.js";
import { openOrigin } from "../support/egress/egress-origin.js";
import { bedSecret } from "../support/gateway/gateway-bed.js";
import { openGatewayBrowser } from "../support/gateway/gateway-browser.js";
import { usualStall } from "../support/stall.js";

const mebibyte = 2 ** 20;
/** A sixth of what parsing 8 MiB takes; one piece of work was as much as that, to several times as much. */
const bearable = 1 / 6;

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

interface Bed {
  readonly origin: string;
  ask(body: string): Promise<IncomingMessage>;
}

async function open(answer: Buffer): Promise<Bed> {
  const origin = await openOrigin((_, reply) => void reply.end(answer));
  closing.push(() => origin.close());
  const { egress } = await openEgress(rulesFor(["127.0.0.1"]));
  closing.push(() => egress.close());
  const browser = await openGatewayBrowser({}, { curl: (asked, gone) => egress.fetch(asked, gone) });
  closing.push(() => browser.close());
  const { id } = browser.chromium;
  const url = `http://127.0.0.1:${browser.bed.port}/browsers/${id}/curl?token=${tokenOf(bedSecret, id, browser.bed.lease(id))}`;
  return {
    origin: `http://127.0.0.1:${origin.port}/`,
    async ask(body) {
      const asking = request(url, { method: "POST" });
      asking.end(body);
      const [reply] = (await once(asking, "response")) as [IncomingMessage];
      return reply;
    },
  };
}

/** Reads it without keeping it: the test's own work counts too. */
async function readAll(reply: IncomingMessage): Promise<number> {
  let bytes = 0;
  for await (const piece of reply as AsyncIterable<Buffer>) bytes += piece.length;
  return bytes;
}

const room = 8 * mebibyte - 100;
const numbered = (count: number, value: string): string =>
  Array.from({ length: count }, (_, at) => `"${String(at).padStart(10, "k")}":${value}`).join(",");
const shapes: Record<string, () => string> = {
  "an array of empty objects": () => `{"url":"http://a.example","headers":[${"{},".repeat(room / 3)}{}]}`,
  "arrays in arrays": () => "[".repeat(room / 2) + "]".repeat(room / 2),
  fields: () => `{${numbered(room / 16, "0")}}`,
  headers: () => `{"url":"http://a.example","headers":{${numbered(room / 20, '"0"')}}}`,
};

test.each(Object.keys(shapes))("8 MiB of %s: refused, and nobody stands still for long", async (name) => {
  const { ask } = await open(Buffer.from("x"));
  const body = shapes[name]?.() ?? "";
  const measure = async (): Promise<void> => {
    const reply = await ask(body);
    expect(reply.statusCode).toBe(400);
    await readAll(reply);
  };
  expect(await usualStall(measure, bearable)).toBeLessThan(bearable);
});

test.each(["x", "\u0001", '"', "\u00ff"])(
  "10 MiB of %j from a site: answered, and nobody stands still for long",
  async (letter) => {
    const { origin, ask } = await open(Buffer.alloc(10 * mebibyte - 1, letter, "latin1"));
    const measure = async (): Promise<void> => {
      const reply = await ask(JSON.stringify({ url: origin }));
      expect(reply.statusCode).toBe(200);
      expect(await readAll(reply)).toBeGreaterThan(10 * mebibyte);
    };
    expect(await usualStall(measure, bearable)).toBeLessThan(bearable);
  },
);

test.each(["utf8", "base64"] as const)(
  "what is written piece by piece is what came, in %s",
  async (encoding) => {
    const body = Buffer.from('a"é€😀\\\u0000\n'.repeat(20_000));
    const { origin, ask } = await open(body);
    const answer = JSON.parse(
      await text(await ask(JSON.stringify({ url: origin, response_encoding: encoding }))),
    ) as object;
    expect(answer).toEqual({
      status: 200,
      headers: expect.any(Object),
      body: body.toString(encoding),
      duration_ms: expect.any(Number),
    });
  },
);
