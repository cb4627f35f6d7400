import { lookup } from "node:dns/promises";
import type { Clock, Millis } from "../base/clock.js";
import { within } from "../base/deadline.js";
import { type Log, textOf } from "../base/log.js";
import type { Endpoint } from "../egress/reserved-endpoints.js";
import { isSentinelUrl, sentinelPlaces } from "../store/redis/sentinels.js";

/** A socket has no port that could be reached; of sentinels the URL names several. */
export function redisEndpoints(url: string): readonly Endpoint[] {
  if (url.startsWith("/")) return [];
  if (isSentinelUrl(url)) return sentinelPlaces(url);
  const { hostname, port } = new URL(url);
  return [{ host: hostname.replaceAll(/^\[|\]$/g, ""), port: Number(port || 6379) }];
}

interface EndpointWatchParts {
  readonly clock: Clock;
  readonly log: Log;
  /** Each source is asked for further endpoints now and then, such as Redis for its replicas. */
  readonly sources: readonly (() => Promise<readonly Endpoint[]>)[];
  /** Finds every address of a name; left out: the system's resolver does. */
  readonly addressesOf?: (host: string) => Promise<readonly string[]>;
}

const limitMs: Millis = 3000;
/**
 * A failover gives a name another address; what was closed for the former one stays closed, up to so many.
 */
const mostEndpoints = 1000;

const systemAddresses = async (host: string): Promise<readonly string[]> =>
  (await lookup(host, { all: true })).map(({ address }) => address);

/**
 * Knows where Remuda and its Redis listen, by every address. It looks them up again and again, since
 * failovers and new nodes change them.
 */
export class EndpointWatch {
  readonly #given: Endpoint[] = [];
  readonly #found = new Map<string, Endpoint>();
  /** Always the present ones: whoever holds it sees what is found later. */
  readonly places: Endpoint[] = [];
  #refreshing: Promise<void> | undefined;

  constructor(private readonly parts: EndpointWatchParts) {}

  /** Closed when it resolves, by the addresses that its name has now. */
  async add(place: Endpoint | undefined): Promise<void> {
    if (!place) return;
    this.#given.push(place);
    await this.#resolve(place);
  }

  /** Never throws: what cannot be found out now stays as it was. */
  refresh(): Promise<void> {
    this.#refreshing ??= this.#refresh().finally(() => (this.#refreshing = undefined));
    return this.#refreshing;
  }

  async #refresh(): Promise<void> {
    const told = await Promise.all(
      this.parts.sources.map((source) => this.#limited("endpoints of this deployment", source())),
    );
    await Promise.all([...this.#given, ...told.flat()].map((place) => this.#resolve(place)));
  }

  /** A name without an address now is left to the rules, which know it by none either. */
  async #resolve({ host, port }: Endpoint): Promise<void> {
    this.#keep({ host, port });
    const find = this.parts.addressesOf ?? systemAddresses;
    for (const address of await this.#limited(`addresses of ${host}`, find(host)))
      this.#keep({ host: address, port });
  }

  async #limited<Value>(what: string, asking: Promise<readonly Value[]>): Promise<readonly Value[]> {
    const { clock, log } = this.parts;
    return await within(clock, { what, limitMs }, asking).catch((error: unknown) => {
      log.debug({ what, error: textOf(error) }, "own endpoints not found out");
      return [];
    });
  }

  #keep(place: Endpoint): void {
    const key = `${place.host} ${place.port}`;
    // The endpoints that were seen last are the last to be forgotten.
    this.#found.delete(key);
    this.#found.set(key, place);
    const [oldest] = this.#found.keys();
    if (this.#found.size > mostEndpoints && oldest !== undefined) this.#found.delete(oldest);
    this.places.splice(0, this.places.length, ...this.#found.values());
  }
}
