import type { BrowserId } from "../base/ids.js";
import { type Log, textOf } from "../base/log.js";
import type { AttestationParts } from "../browser/attestation.js";
import type { BrowserProxy } from "../browser/chromium.js";
import { Egress } from "../egress/egress.js";
import type { EgressParts, ProxyListener } from "../egress/parts.js";
import type { Rules } from "../egress/rules.js";
import type { NetworkChange, TrafficUsage } from "../pool/browser.js";
import { matchesHost, parseHost } from "../base/net/hosts.js";
import type { LaunchTemplate } from "../spec/launch-template.js";
import { type RuleSources, rulesOf } from "./network-rules.js";

/** What opens the egress of this node's browsers. */
export interface BrowserEgressPorts extends RuleSources {
  /** Opens a listener of the tier in force. */
  openListener(): Promise<ProxyListener>;
  readonly egress: EgressParts;
  /** The operator's: has to answer before a browser is idle, where that browser's rules allow it. */
  readonly allowedProbeUrl: string | null;
  readonly log: Log;
  readonly meter: { opened(tier: Egress["tier"]): void; closed(tier: Egress["tier"]): void };
}

/**
 * Who the traffic is counted for. Before `begin` the only traffic is the proof that the browser is held,
 * which counts for nobody.
 */
interface Use {
  isBegun: boolean;
  refused: NonNullable<EgressParts["refused"]>;
}

interface Base {
  readonly rules: Rules;
  readonly template: LaunchTemplate;
  readonly ports: BrowserEgressPorts;
  readonly use: Use;
}

function partsInUse(parts: EgressParts, use: Use): EgressParts {
  const { meter, log } = parts;
  return {
    ...parts,
    refused: (host, why) => use.refused(host, why),
    meter: {
      request: (browser, outcome) => void (use.isBegun && meter.request(browser, outcome)),
      carried: (browser, direction, bytes) => void (use.isBegun && meter.carried(browser, direction, bytes)),
    },
    log: {
      debug: log.debug.bind(log),
      warn: log.warn.bind(log),
      error: log.error.bind(log),
      child: log.child.bind(log),
      info: (fields, message) => (use.isBegun ? log.info(fields, message) : log.debug(fields, message)),
    },
  };
}

/** Addresses of clouds' metadata: closed to whoever has not opened that very one by name. */
const deniedHosts = ["169.254.169.254", "100.100.100.200", "168.63.129.16"];

/** What the proof asks for: a destination that the rules deny, and the operator's, where they allow it. */
function probesOf(
  { allowed, privates }: Rules,
  probeUrl: string | null,
): Pick<AttestationParts, "denied" | "allowed"> {
  const isNamed = (host: string): boolean =>
    privates.some((pattern) => pattern.kind === "address" && pattern.address === host);
  const denied = deniedHosts.find((host) => !isNamed(host)) ?? deniedHosts[0];
  const target = probeUrl === null ? undefined : targetOf(probeUrl);
  const isAllowed = target && (allowed === null || allowed.some((pattern) => matchesHost(pattern, target)));
  return { denied: `http://${denied}/`, ...(isAllowed && probeUrl !== null && { allowed: probeUrl }) };
}

function targetOf(url: string): { host: string; port: number } | undefined {
  const { hostname, port, protocol } = new URL(url);
  const host = parseHost(hostname)?.host;
  return host === undefined ? undefined : { host, port: Number(port) || (protocol === "http:" ? 80 : 443) };
}

/**
 * The one way out of one browser: open before its launch, closed after its end. Its rules are those of the
 * launch until a lease changes them. Shut, it lets nothing pass until rules are applied again.
 */
export class BrowserEgress {
  #present: Rules;
  #isShut = false;
  #isHeld = false;
  #closing: Promise<void> | undefined;

  private constructor(
    readonly egress: Egress,
    private readonly base: Base,
  ) {
    this.#present = base.rules;
  }

  /** Throws, with a text for people, where there can be none; then nothing of it is left. */
  static async open(
    browser: BrowserId,
    template: LaunchTemplate,
    ports: BrowserEgressPorts,
  ): Promise<BrowserEgress> {
    const rules = await rulesOf(template, ports);
    const listener = await ports.openListener();
    const use: Use = { isBegun: false, refused() {} };
    try {
      const egress = await Egress.open({ browser, rules, listener }, partsInUse(ports.egress, use));
      ports.meter.opened(egress.tier);
      return new BrowserEgress(egress, { rules, template, ports, use });
    } catch (error) {
      listener.close();
      throw error;
    }
  }

  /** The proxy for a launch; a restart is held to the rules that are in force then. */
  get spec(): BrowserProxy {
    const { proxyUrl, namespace, userNamespace } = this.egress;
    const { allowedProbeUrl } = this.base.ports;
    const probes = probesOf(this.#present, this.#isShut ? null : allowedProbeUrl);
    const places = {
      ...(namespace !== undefined && { namespace }),
      ...(userNamespace !== undefined && { userNamespace }),
    };
    const attesting = { usage: () => this.egress.usage(), ...probes };
    return { proxyUrl, admit: (uid) => this.egress.admit(uid), attesting, ...places };
  }

  /** Nothing opens it again. */
  get isClosed(): boolean {
    return this.#closing !== undefined;
  }

  /** From this call on the browser is somebody's; `refused` is told of what does not get through. */
  begin(refused: Use["refused"] = () => {}): void {
    this.base.use.isBegun = true;
    this.base.use.refused = refused;
  }

  /**
   * The rules of the launch with what a lease has changed. Throws where a proxy cannot be opened; nothing has
   * changed then.
   */
  rulesWith(change: NetworkChange): Promise<Rules> {
    return rulesOf(this.base.template, this.base.ports, change);
  }

  /**
   * Once this resolves the rules are in force, and what they no longer allow is cut. Without an argument it
   * restores the rules of the launch.
   */
  async apply(rules: Rules = this.base.rules): Promise<void> {
    this.#present = rules;
    this.#isShut = false;
    if (!this.#isHeld) await this.egress.apply(rules);
  }

  /**
   * Cuts what is open and lets nothing pass, whatever rules are applied meanwhile, until the returned
   * function is called.
   */
  hold(): () => Promise<void> {
    this.#isHeld = true;
    this.egress.shut();
    return async () => {
      this.#isHeld = false;
      if (!this.#isShut && !this.isClosed) await this.egress.apply(this.#present);
    };
  }

  get isShut(): boolean {
    return this.#isShut;
  }

  shut(): void {
    if (this.#isShut) return;
    this.#isShut = true;
    this.egress.shut();
  }

  /** Undoes `shut`: the rules that were in force before it are again. */
  async reopen(): Promise<void> {
    if (this.#isShut) await this.apply(this.#present);
  }

  /** The traffic since it was opened. */
  used(): TrafficUsage {
    const { requests, denied, bytesSent, bytesReceived } = this.egress.usage();
    return {
      requests,
      denied: Object.values(denied).reduce((sum, count) => sum + count, 0),
      bytesSent,
      bytesReceived,
    };
  }

  /** Has to be called once; after it nothing passes. Never throws. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const { log, meter } = this.base.ports;
    await this.egress
      .close()
      .catch((error: unknown) => log.error({ error: textOf(error) }, "egress did not close"));
    meter.closed(this.egress.tier);
  }
}
