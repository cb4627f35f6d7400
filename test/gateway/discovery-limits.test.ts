import { afterEach, beforeEach, expect, test } from "vitest";
import { type GatewayBrowser, openGatewayBrowser } from "../support/gateway/gateway-browser.js";
import { getJson } from "../support/gateway/gateway-bed.js";

let browser: GatewayBrowser;
beforeEach(async () => (browser = await openGatewayBrowser()));
afterEach(() => browser.close());

const askAll = (url: string, count: number): Promise<number[]> =>
  Promise.all(Array.from({ length: count }, async () => (await getJson(url)).status));

test.each(["/json/list", "/json/version"])(
  "the holder of a lease may ask for so many of %s at once; the next holder starts anew",
  async (page) => {
    // None is answered before all have been asked.
    let open = (): void => {};
    const isOpen = new Promise<void>((resolve) => (open = resolve));
    const { connects } = browser.bed;
    browser.bed.connects = async (visiting) => (await isOpen, connects(visiting));
    const refused: number[] = [];
    const first = Array.from({ length: 60 }, async () => {
      const { status } = await getJson(browser.http(page));
      if (status === 429) refused.push(status);
      return status;
    });
    await expect.poll(() => refused.length).toBe(44);
    browser.bed.newLease(browser.chromium.id);
    const next = askAll(browser.http(page), 10);
    open();
    expect(await next).toEqual(Array.from({ length: 10 }, () => 200));
    await Promise.all(first);
    expect(await askAll(browser.http(page), 10)).toEqual(Array.from({ length: 10 }, () => 200));
  },
);
