import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { DrivenClock } from "../support/driven-clock.js";
import { newBrowserId, onDemandPartition } from "../../src/base/ids.js";
import { Denials } from "../../src/egress/denials.js";
import { openEgress, rulesFor } from "../support/egress/egress-bed.js";
import { ask } from "../support/egress/egress-client.js";
import { makeLogBook } from "../support/http/http-server.js";

const told = (lines: ReturnType<typeof makeLogBook>["lines"]) =>
  lines.filter(({ message }) => message === "egress denied");

test("a page that asks for denied hosts a thousand times writes two lines: the first at once, the rest with its end", async () => {
  const bed = await openEgress(rulesFor([]));
  const startedAt = performance.now();
  const asked = Array.from({ length: 1000 }, (_, i) => i);
  for (const part of [asked.slice(0, 500), asked.slice(500)]) {
    await Promise.all(part.map((i) => ask(bed.port, `http://127.0.0.1:${1024 + i}/secret?token=${i}`)));
  }
  await bed.egress.close();
  const lines = told(bed.lines);
  // One for each second that it took, the first and the last.
  expect(lines.length).toBeLessThan((performance.now() - startedAt) / 1000 + 3);
  expect(lines.reduce((sum, { fields }) => sum + Number((fields as { count: number }).count), 0)).toBe(1000);
  expect(JSON.stringify(lines)).not.toMatch(/secret|token/);
  expect(bed.egress.usage().denied).toEqual({ private: 1000 });
});

test("a page that asks again as soon as it is denied is answered later, and what is allowed is not", async () => {
  const site = createServer((_, reply) => reply.end("open"));
  await once(site.listen(0, "127.0.0.1"), "listening");
  const url = `http://127.0.0.1:${(site.address() as AddressInfo).port}/`;
  const bed = await openEgress(rulesFor([new URL(url).host]));
  const startedAt = performance.now();
  const over = new AbortController();
  let denied = 0;
  const again = async (): Promise<void> => {
    while (!over.signal.aborted) {
      await ask(bed.port, "http://10.0.0.1/");
      denied += 1;
    }
  };
  const pages = Array.from({ length: 32 }, () => again());
  await expect.poll(() => denied > 200).toBe(true);
  const tookMs: number[] = [];
  for (let turn = 0; turn < 5; turn += 1) {
    const before = performance.now();
    expect(await ask(bed.port, url)).toMatchObject({ status: 200 });
    tookMs.push(performance.now() - before);
  }
  // One or the other meets a machine that is busy.
  expect(Math.min(...tookMs)).toBeLessThan(900);
  await expect.poll(() => performance.now() - startedAt > 2500).toBe(true);
  over.abort();
  await Promise.all(pages);
  // Each second 200 are written, and what waited: without the wait it is thousands.
  expect(denied).toBeLessThan(232 * ((performance.now() - startedAt) / 1000 + 2));
  await bed.egress.close();
  site.close();
});

test("denials of a browser are one line a second, by rule, with one of their hosts", async () => {
  const clock = new DrivenClock();
  const { log, lines } = makeLogBook();
  const browser = newBrowserId(onDemandPartition);
  const denials = new Denials({ browser, clock, log });
  denials.add("private", { host: "10.0.0.1", port: 1 });
  denials.add("metadata", { host: "169.254.169.254", port: 80 });
  for (let i = 0; i < 9; i += 1) denials.add("private", { host: `10.0.0.${i}`, port: 2 });
  expect(lines).toHaveLength(1);
  await clock.advance(999);
  expect(lines).toHaveLength(1);
  await clock.advance(10_000);
  expect(lines.map(({ fields }) => fields)).toEqual([
    { browser, count: 1, by: { private: 1 }, host: "10.0.0.1", port: 1 },
    { browser, count: 10, by: { metadata: 1, private: 9 }, host: "169.254.169.254", port: 80 },
  ]);
  denials.add("closed", { host: "a.test", port: 443 });
  denials.close();
  expect(lines).toHaveLength(3);
});

test("a hostile name is refused as no host before it could be logged, or is short and plain", async () => {
  const bed = await openEgress(rulesFor([], ["allowed.test"]));
  const names = [
    "a%0a12:00.test",
    `${"x".repeat(63)}.`.repeat(40),
    "a\u009b2J.test",
    "xn--a-ecp.ru",
    `${"b".repeat(60)}.test`,
  ];
  for (const name of names) await ask(bed.port, `http://${encodeURI(name)}/`).catch(() => {});
  await bed.egress.close();
  const lines = told(bed.lines);
  expect(lines.length).toBeGreaterThan(0);
  for (const { fields } of lines) expect((fields as { host: string }).host).toMatch(/^[a-z0-9._-]{1,253}$/);
});
