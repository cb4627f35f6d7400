import { type RawCdp } from "../gateway/raw-cdp.js";

/**
 * Has a page ask each of these again and again, whatever comes of it. To one that ends in "=" is added when
 * it was asked (ms of the machine's clock).
 */
export async function askForever(client: RawCdp, page: string, urls: readonly string[]): Promise<void> {
  const ask = `for (const url of ${JSON.stringify(urls)}) setInterval(() => fetch(url.endsWith("=") ? url + Date.now() : url, { mode: "no-cors", cache: "no-store" }).catch(() => {}), 20); "asking"`;
  await client.evaluate(ask, page);
}

/** What came while `work` went on. */
export async function arrivals(requests: readonly string[], work: () => Promise<unknown>): Promise<number> {
  const before = requests.length;
  await work();
  return requests.length - before;
}

/** When each request was asked whose page said so. */
export const askedAt = (requests: readonly string[]): readonly number[] =>
  requests.map((url) => Number(url.split("asked=")[1]));
