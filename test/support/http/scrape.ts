import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";

interface Scraped {
  readonly status: number | undefined;
  readonly headers: IncomingMessage["headers"];
  readonly text: string;
}

/** Reads `/metrics` by a name of the daemon's: by another than loopback's it asks for a key. */
export async function scrape(url: string, host: string, bearer: string): Promise<Scraped> {
  const headers = { host, authorization: `Bearer ${bearer}` };
  const asking = request(`${url}/metrics`, { headers, agent: false }).end();
  const [reply] = (await once(asking, "response")) as [IncomingMessage];
  return { status: reply.statusCode, headers: reply.headers, text: await text(reply) };
}
