import { Agent as HttpAgent, type AgentOptions, type ClientRequestArgs } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { isIP, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { connect as connectTls } from "node:tls";
import type { Clock, Millis } from "../base/clock.js";
import { type HostPattern, parseHost } from "../base/net/hosts.js";
import { dial } from "./dial.js";
import type { Resolve } from "./resolve.js";
import { judgeTarget, type ReservedEndpoints, type Route, type Rules, type TargetHost } from "./rules.js";
import { parseAuthority } from "./target.js";

/** What says which collectors telemetry may be sent to. */
export interface CollectorParts {
  readonly resolve: Resolve;
  readonly reserved: ReservedEndpoints;
  /** Those that the operator has opened although they are private. */
  readonly privates: readonly HostPattern[];
}

/** Judges a collector by the rules that hold for browsers: its name, then every address that it has now. */
async function judgeCollector({ privates, ...parts }: CollectorParts, target: TargetHost): Promise<Route> {
  const rules: Rules = { allowed: null, privates, routes: [] };
  return await judgeTarget(rules, target, parts);
}

/** Why nothing is sent to a collector, for whoever names it; undefined: it may be. */
export async function whyClosed(parts: CollectorParts, url: URL): Promise<string | undefined> {
  const target = parseAuthority(url.host, url.protocol === "http:" ? 80 : 443);
  const route = target && (await judgeCollector(parts, target));
  if (route && route.kind !== "denied") return undefined;
  return !route || route.by === "unresolved"
    ? "names a host that has no address"
    : "must be at a public address";
}

/** The code of the error of a request to an address that may not be reached. */
export const closedCollectorCode = "ECOLLECTORCLOSED";

interface AgentParts extends CollectorParts {
  readonly clock: Clock;
  readonly connectMs: Millis;
}
type Created = (error: Error | null, socket?: Duplex) => void;

/**
 * Connects to collectors. Each request has a connection of its own, to an address that was judged for it:
 * whatever a name has come to mean, and wherever the collector has been before.
 */
export function makeCollectorAgent(parts: AgentParts, protocol: string): HttpAgent {
  const create = (asked: ClientRequestArgs, created: Created): undefined => {
    openSocket(parts, asked, protocol === "https:").then((socket) => created(null, socket), created);
  };
  return protocol === "https:" ? new JudgedHttpsAgent(create) : new JudgedHttpAgent(create);
}

type Create = (asked: ClientRequestArgs, created: Created) => undefined;
const unkept: AgentOptions = { keepAlive: false };

class JudgedHttpAgent extends HttpAgent {
  constructor(private readonly create: Create) {
    super(unkept);
  }
  override createConnection(asked: ClientRequestArgs, created: Created): undefined {
    return this.create(asked, created);
  }
}
class JudgedHttpsAgent extends HttpsAgent {
  constructor(private readonly create: Create) {
    super(unkept);
  }
  override createConnection(asked: ClientRequestArgs, created: Created): undefined {
    return this.create(asked, created);
  }
}

async function openSocket(
  parts: AgentParts,
  { host, port }: ClientRequestArgs,
  isSecure: boolean,
): Promise<Socket> {
  const read = parseHost(String(host).replaceAll(/^\[|\]$/g, ""));
  const target = { host: read?.host ?? "", port: Number(port) };
  const until = parts.clock.monotonic() + parts.connectMs;
  const route = await judgeCollector(parts, target);
  if (route.kind !== "direct") throw refused(route);
  const { socket } = await dial(route.addresses, target.port, { clock: parts.clock, until });
  return isSecure ? secured(socket, target.host) : socket;
}

/** A name without an address may have one again. */
const refused = (route: Route): Error =>
  Object.assign(new Error("the collector may not be reached"), {
    code: route.kind === "denied" && route.by === "unresolved" ? "ENOTFOUND" : closedCollectorCode,
  });

const secured = (socket: Socket, host: string): Socket =>
  connectTls({ socket, host, ALPNProtocols: ["http/1.1"], ...(isIP(host) ? {} : { servername: host }) });
