import { type RawCdp } from "../gateway/raw-cdp.js";

/** Has a page ask each of these again and again, whatever comes of it. */
export async function askForever(client: RawCdp, page: string, urls: readonly string[]): Promise<void> {
  const ask = `for (const url of ${JSON.stringify(urls)}) setInterval(() => fetch(url, { mode: "no-cors", cache: "no-store" }).catch(() => {}), 20); "asking"`;
  await client.evaluate(ask, page);
}

/** What came while `work` went on. */
export async function arrivals(requests: readonly string[], work: () => Promise<unknown>): Promise<number> {
  const before = requests.length;
  await work();
  return requests.length - before;
}
