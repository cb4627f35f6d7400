import { newBrowserId, onDemandPartition } from "../../../src/base/ids.js";
import { systemClock } from "../../../src/base/clock.js";
import { Egress } from "../../../src/egress/egress.js";
import type { EgressParts, EgressSettings, ProxyListener } from "../../../src/egress/parts.js";
import { makeReservedEndpoints } from "../../../src/egress/reserved-endpoints.js";
import { openPort } from "../../../src/egress/port.js";
import type { Resolve } from "../../../src/egress/resolve.js";
import type { Rules } from "../../../src/egress/rules.js";
import { type HostPattern, parseHostPattern } from "../../../src/base/net/hosts.js";
import { makeLogBook, type LogLine } from "../http/http-server.js";

export const egressSettings: EgressSettings = {
  connectMs: 60_000,
  idleMs: 20_000,
  maxConnections: 1000,
  bytesPerSecond: null,
  headerBytes: 16_384,
};

export const patterns = (...texts: string[]): HostPattern[] =>
  texts.map((text) => {
    const parsed = parseHostPattern(text, { withRanges: true });
    if (parsed.kind === "fault") throw new Error(`${text} ${parsed.message}`);
    return parsed.pattern;
  });

/** Rules that open private hosts, and allow every host or those named. */
export const rulesFor = (privates: readonly string[], allowed: readonly string[] | null = null): Rules => ({
  allowed: allowed && patterns(...allowed),
  privates: patterns(...privates),
  routes: [],
});

export interface EgressBed {
  readonly egress: Egress;
  readonly port: number;
  readonly lines: LogLine[];
  /** `outcome` of each request, in their order. */
  readonly outcomes: string[];
  readonly carried: Record<"sent" | "received", number>;
}

/** What the names of a test resolve to, read anew for each question. */
export const resolveBy =
  (names: Readonly<Record<string, readonly string[]>>): Resolve =>
  async (host) =>
    names[host] ?? [];

export interface BedOptions {
  readonly settings?: Partial<EgressSettings>;
  readonly parts?: Partial<EgressParts>;
  readonly listener?: ProxyListener;
}

/** An egress of the proxy tier on a port of its own. */
export async function openEgress(
  rules: Rules,
  { settings = {}, parts = {}, listener = openPort({ host: "127.0.0.1" }) }: BedOptions = {},
): Promise<EgressBed> {
  const { log, lines } = makeLogBook();
  const outcomes: string[] = [];
  const carried = { sent: 0, received: 0 };
  const egress = await Egress.open(
    { browser: newBrowserId(onDemandPartition), rules, listener },
    {
      settings: { ...egressSettings, ...settings },
      resolve: resolveBy({}),
      reserved: makeReservedEndpoints([]),
      // The proxies of tests are on this machine.
      proxyHosts: patterns("127.0.0.0/8"),
      clock: systemClock,
      log,
      meter: {
        request: (_, outcome) => void outcomes.push(outcome),
        carried: (_, direction, bytes) => void (carried[direction] += bytes),
      },
      ...parts,
    },
  );
  return { egress, port: Number(new URL(egress.proxyUrl).port), lines, outcomes, carried };
}
