import { Resolver } from "node:dns/promises";
import { errnoOf } from "../base/errno.js";
import type { Clock, Millis } from "../base/clock.js";
import { within } from "../base/deadline.js";
import { parseHost } from "../base/net/hosts.js";
import { loopbackOf } from "./ranges.js";

/**
 * Every address a name has, IPv4 first, in canonical form; none: there is no such name. Throws where no
 * server answered in time, or when `signal` aborts.
 */
export type Resolve = (host: string, signal?: AbortSignal) => Promise<readonly string[]>;

interface ResolverOptions {
  readonly clock: Clock;
  readonly limitMs: Millis;
  /**
   * Name servers as `address` or `address:port`; left out: those of /etc/resolv.conf, read anew for each
   * name.
   */
  readonly servers?: readonly string[];
}

/** Servers answer so for a name that has no such address. */
const noAddress = new Set(["ENODATA", "ENOTFOUND"]);

/**
 * Asks DNS and nothing else. /etc/hosts is not read: whoever could write it would decide what an allowed name
 * reaches, and DNS is what an operator watches. Names that a pod has only there (hostAliases) must be in DNS,
 * or be named by address. Search domains are not tried either: with them a name would mean another host than
 * the one that was judged. There is no cache: a name is resolved once per connection, and what was resolved
 * is what is dialled.
 */
export function makeResolve({ clock, limitMs, servers }: ResolverOptions): Resolve {
  return async (host, signal) => {
    const read = parseHost(host);
    if (!read) return [];
    if (read.kind === "address") return [read.host];
    const loopback = loopbackOf(read.host);
    if (loopback) return loopback;
    signal?.throwIfAborted();
    // Each name has a resolver of its own, since only all queries of a resolver together can be cancelled.
    const resolver = new Resolver({ timeout: Math.ceil(limitMs / 4), tries: 2 });
    if (servers) resolver.setServers(servers);
    const cancel = (): void => resolver.cancel();
    signal?.addEventListener("abort", cancel, { once: true });
    const limited = (answer: Promise<string[]>): Promise<string[]> =>
      within(clock, { what: "resolving a name", limitMs }, answer);
    try {
      return addressesIn(
        await Promise.allSettled([
          limited(resolver.resolve4(read.host)),
          limited(resolver.resolve6(read.host)),
        ]),
      );
    } finally {
      signal?.removeEventListener("abort", cancel);
      cancel();
    }
  };
}

/** The answer of one family is enough: addresses of the other would then not be dialled either. */
function addressesIn(answers: readonly PromiseSettledResult<string[]>[]): readonly string[] {
  const found = answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
  const failed = answers.find(
    (answer) => answer.status === "rejected" && !noAddress.has(errnoOf(answer.reason) ?? ""),
  );
  if (found.length === 0 && failed?.status === "rejected") throw failed.reason;
  return found.flatMap((address) => parseHost(address)?.host ?? []);
}
