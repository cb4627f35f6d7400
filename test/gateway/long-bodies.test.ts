import { afterAll, beforeAll, expect, test } from "vitest";
import { tokenOf } from "../../src/base/crypto/lease-token.js";
import type { NodeAddress } from "../../src/gateway/ports.js";
import { bedSecret, type GatewayBed, openGatewayBed, rawAnswer } from "../support/gateway/gateway-bed.js";
import { type GatewayBrowser, openGatewayBrowser } from "../support/gateway/gateway-browser.js";

// Behind a proxy the next request on a connection may be anybody's.
let browser: GatewayBrowser;
let front: GatewayBed;
let address: NodeAddress;
beforeAll(async () => {
  browser = await openGatewayBrowser();
  front = await openGatewayBed([], { findAddress: async () => address });
  address = { host: "127.0.0.1", port: browser.bed.port };
});
afterAll(async () => {
  await front.close();
  await browser.close();
});

const mebibyte = 2 ** 20;
const host = "Host: 127.0.0.1\r\n";

/** The statuses of a request with so long a body, and of one that comes after it on its connection. */
async function statuses(port: number, path: string, bytes: number): Promise<readonly number[]> {
  const { id } = browser.chromium;
  const target = `/browsers/${id}/${path}?token=${tokenOf(bedSecret, id, browser.bed.lease(id))}`;
  const long = `POST ${target} HTTP/1.1\r\n${host}Content-Length: ${bytes}\r\n\r\n${"x".repeat(bytes)}`;
  const answers = await rawAnswer(port, `${long}GET / HTTP/1.1\r\n${host}Connection: close\r\n\r\n`);
  return [...answers.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));
}

test.each([
  ["webdriver/session", 3 * mebibyte],
  ["curl", 11 * mebibyte],
])(
  "a body of %s that is too long keeps nothing from the next request on its connection",
  async (...asked) => {
    expect(await statuses(browser.bed.port, ...asked)).toEqual([400, 404]);
  },
);

test("nor does one that another daemon's browser was to have", async () => {
  expect(await statuses(front.port, "curl", 11 * mebibyte)).toEqual([400, 404]);
});

test("nor one whose node cannot be reached", async () => {
  address = { host: "127.0.0.1", port: 9 };
  expect(await statuses(front.port, "curl", 11 * mebibyte)).toEqual([502, 404]);
});
