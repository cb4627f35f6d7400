import { expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import { RemudaError } from "../../../src/base/errors.js";
import { type BrowserId, newBrowserId, onDemandPartition } from "../../../src/base/ids.js";
import type { NodeAddress } from "../../../src/gateway/ports.js";
import { KnownAddresses } from "../../../src/gateway/relay/known-addresses.js";

const limitMs = 50;
const browser = newBrowserId(onDemandPartition);
const [first, second]: NodeAddress[] = [
  { host: "node-1", port: 1 },
  { host: "node-2", port: 2 },
];

const known = (find: (browser: BrowserId) => Promise<NodeAddress | undefined>): KnownAddresses =>
  new KnownAddresses({ clock: systemClock, limitMs, find });

test("while Redis answers, its word counts; while it does not, its last one", async () => {
  let answer = (): Promise<NodeAddress | undefined> => Promise.resolve(first);
  const addresses = known(() => answer());
  expect(await addresses.find(browser)).toBe(first);
  answer = () => Promise.resolve(second);
  expect(await addresses.find(browser)).toBe(second);
  answer = () => Promise.reject(new RemudaError("store_unavailable"));
  expect(await addresses.find(browser)).toBe(second);
  answer = () => new Promise(() => {});
  expect(await addresses.find(browser)).toBe(second);
  const fault = new TypeError("a mistake");
  answer = () => Promise.reject(fault);
  await expect(addresses.find(browser)).rejects.toBe(fault);
});

test("a browser that no node has any more is forgotten, and one that nobody asked for was never known", async () => {
  let answer = (): Promise<NodeAddress | undefined> => Promise.resolve(first);
  const addresses = known(() => answer());
  await addresses.find(browser);
  answer = () => Promise.resolve(undefined);
  expect(await addresses.find(browser)).toBeUndefined();
  answer = () => Promise.reject(new RemudaError("store_unavailable"));
  await expect(addresses.find(browser)).rejects.toMatchObject({ code: "store_unavailable" });
  await expect(addresses.find(newBrowserId(onDemandPartition))).rejects.toMatchObject({
    code: "store_unavailable",
  });
});

test("no more than 10,000 are known: the longest unasked for goes first", async () => {
  let isAway = false;
  const addresses = known(() =>
    isAway ? Promise.reject(new RemudaError("store_unavailable")) : Promise.resolve(first),
  );
  const browsers = Array.from({ length: 10_001 }, () => newBrowserId(onDemandPartition));
  for (const each of browsers) await addresses.find(each);
  isAway = true;
  expect(await addresses.find(browsers[1] as BrowserId)).toBe(first);
  await expect(addresses.find(browsers[0] as BrowserId)).rejects.toMatchObject({ code: "store_unavailable" });
});
