import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { Clock, Millis } from "../base/clock.js";
import { within } from "../base/deadline.js";
import { onDemandLabel } from "../base/ids.js";
import { type Log, textOf } from "../base/log.js";
import { AuditMetrics } from "./audit-metrics.js";
import { EpochMetrics } from "./epoch-watch.js";
import { type ExportGauge, ExportMetrics } from "./export-metrics.js";
import { NodeMetrics } from "./node-metrics.js";
import { type ScalingGauge, ScalingMetrics } from "./scaling-metrics.js";
import { type StandbyGauge, StandbyMetrics } from "./standby-metrics.js";
import { TelemetryMetrics } from "./telemetry-metrics.js";
import { processGauges } from "./process-gauges.js";

export interface PoolGauge {
  /** The pool's name, else its id. */
  readonly pool: string;
  readonly states: Readonly<Record<string, number>>;
  readonly waiting: number;
}
export interface NodeGauge {
  readonly state: string;
  readonly count: number;
}
/** What is read from the store at each scrape. */
export interface Gauges {
  pools(): Promise<readonly PoolGauge[]>;
  nodes(): Promise<readonly NodeGauge[]>;
  exports?(): Promise<readonly ExportGauge[]>;
  scaling?(): Promise<ScalingGauge>;
  standby?(): Promise<StandbyGauge> | StandbyGauge;
}

/** What the control counts. A reason is a word of a fixed set. */
interface PoolMeter {
  acquired(pool: string, outcome: "granted" | "timed_out" | "refused" | "gone", waitedMs: Millis): void;
  launched(pool: string): void;
  launchFailed(pool: string, reason: string): void;
  leaseEnded(pool: string, reason: string): void;
}
/** What a node counts of its browsers' ways out. */
interface EgressMeter {
  asked(pool: string, outcome: "direct" | "upstream" | "denied", count: number): void;
  denied(pool: string, reason: string, count: number): void;
  passed(pool: string, direction: "sent" | "received", bytes: number): void;
  opened(tier: "namespace" | "proxy"): void;
  closed(tier: "namespace" | "proxy"): void;
}
/** What a node's gateway counts. */
interface GatewayMeter {
  connected(): void;
  disconnected(): void;
  carried(direction: "to_browser" | "to_client", bytes: number): void;
  refused(reason: string): void;
}

interface MetricsContext {
  readonly clock: Clock;
  readonly log: Log;
  readonly gauges?: Gauges;
  /**
   * How far this machine's wall clock is ahead of the store's. Throws where the store does not answer.
   */
  aheadMs(): Promise<Millis>;
}

const readLimitMs = 2000;
/** In seconds: an acquire takes about a millisecond, or as long as its caller is willing to wait. */
const waitBuckets = [0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.064, 0.25, 1, 4, 15, 60];

/**
 * All series of this process. Labels are pools and reasons, never browsers; a pool that is gone takes its
 * series along.
 */
export class Metrics implements PoolMeter, GatewayMeter, EgressMeter {
  readonly #registry = new Registry();
  readonly #browsers = this.#gauge("remuda_pool_browsers", "Browsers of each pool by state", [
    "pool",
    "state",
  ]);
  readonly #waiters = this.#gauge("remuda_pool_waiters", "Acquires that are waiting", ["pool"]);
  readonly #nodes = this.#gauge("remuda_nodes", "Nodes by state", ["state"]);
  readonly #readable = this.#gauge("remuda_store_up", "1 where Redis answered at this scrape, else 0", []);
  readonly #ahead = this.#gauge(
    "remuda_clock_ahead_seconds",
    "How far this machine's wall clock is ahead of Redis's; absent where Redis does not answer",
    [],
  );
  readonly #wait = new Histogram({
    name: "remuda_acquire_wait_seconds",
    help: "From an acquire's arrival to its answer",
    labelNames: ["pool", "outcome"],
    buckets: waitBuckets,
    registers: [this.#registry],
  });
  readonly #launches = this.#counter("remuda_launches_total", "Browsers launched", ["pool"]);
  readonly #launchFailures = this.#counter("remuda_launch_failures_total", "Launches that failed", [
    "pool",
    "reason",
  ]);
  readonly #leasesEnded = this.#counter("remuda_leases_ended_total", "Leases that ended", ["pool", "reason"]);
  readonly #connections = this.#gauge(
    "remuda_gateway_connections",
    "Clients connected to browsers of this node",
    [],
  );
  readonly #bytes = this.#counter(
    "remuda_gateway_bytes_total",
    "Payload carried between clients and browsers",
    ["direction"],
  );
  readonly #refusals = this.#counter(
    "remuda_gateway_refusals_total",
    "Commands of clients that the gate refused, by method",
    ["reason"],
  );
  readonly #egressTiers = this.#gauge(
    "remuda_egress_browsers",
    "Browsers of this node by what holds them to their proxy",
    ["tier"],
  );
  readonly #requests = this.#counter(
    "remuda_egress_requests_total",
    "Requests and tunnels that browsers asked their proxy for",
    ["pool", "outcome"],
  );
  readonly #denied = this.#counter("remuda_egress_denied_total", "Of those, what the rules did not allow", [
    "pool",
    "reason",
  ]);
  readonly #carried = this.#counter("remuda_egress_bytes_total", "Bytes between browsers and the outside", [
    "pool",
    "direction",
  ]);

  readonly audit = new AuditMetrics(this.#registry);
  readonly epochs = new EpochMetrics(this.#registry);
  readonly exports = new ExportMetrics(this.#registry);
  readonly node = new NodeMetrics(this.#registry);
  readonly scaling = new ScalingMetrics(this.#registry);
  readonly standby = new StandbyMetrics(this.#registry);
  readonly telemetry = new TelemetryMetrics(this.#registry);

  readonly #words = new ReasonLabels();

  readonly contentType = this.#registry.contentType;

  /** Where there are no gauges (a node's agent), only what this process counts itself is shown. */
  constructor(private readonly context: MetricsContext) {
    for (const gauge of processGauges()) this.#registry.registerMetric(gauge);
  }

  acquired(pool: string, outcome: string, waitedMs: Millis): void {
    this.#wait.observe({ pool, outcome }, waitedMs / 1000);
  }
  launched(pool: string): void {
    this.#launches.inc({ pool });
  }
  launchFailed(pool: string, reason: string): void {
    this.#launchFailures.inc({ pool, reason: this.#words.of(reason) });
  }
  leaseEnded(pool: string, reason: string): void {
    this.#leasesEnded.inc({ pool, reason: this.#words.of(reason) });
  }
  connected(): void {
    this.#connections.inc();
  }
  disconnected(): void {
    this.#connections.dec();
  }
  carried(direction: string, bytes: number): void {
    this.#bytes.inc({ direction }, bytes);
  }
  refused(reason: string): void {
    this.#refusals.inc({ reason: this.#words.of(reason) });
  }
  asked(pool: string, outcome: string, count: number): void {
    this.#requests.inc({ pool, outcome }, count);
  }
  denied(pool: string, reason: string, count: number): void {
    this.#denied.inc({ pool, reason: this.#words.of(reason) }, count);
  }
  passed(pool: string, direction: string, bytes: number): void {
    this.#carried.inc({ pool, direction }, bytes);
  }
  opened(tier: string): void {
    this.#egressTiers.inc({ tier });
  }
  closed(tier: string): void {
    this.#egressTiers.dec({ tier });
  }

  async text(): Promise<string> {
    await this.#read();
    return this.#registry.metrics();
  }

  /** Where the store cannot be read its gauges are absent rather than old, and the rest is still shown. */
  async #read(): Promise<void> {
    const { gauges, clock, log, aheadMs } = this.context;
    if (!gauges) return await this.#reach();
    try {
      const all = Promise.all([
        gauges.pools(),
        gauges.nodes(),
        gauges.exports?.() ?? [],
        gauges.scaling?.(),
        gauges.standby?.(),
        aheadMs(),
      ]);
      const limit = { what: "reading for metrics", limitMs: readLimitMs };
      const [pools, nodes, exports, scaling, standby, ahead] = await within(clock, limit, all);
      this.#showStore(ahead);
      this.#show(pools, nodes);
      this.exports.show(exports);
      this.scaling.show(scaling);
      this.standby.show(standby);
      await this.#forgetAllBut(new Set([onDemandLabel, ...pools.map(({ pool }) => pool)]));
    } catch (error) {
      log.debug({ reason: textOf(error) }, "metrics were not read from the store");
      this.#show([], []);
      this.exports.show([]);
      this.scaling.show(undefined);
      this.standby.show(undefined);
      this.#showStore(undefined);
    }
  }

  async #reach(): Promise<void> {
    const { clock, aheadMs } = this.context;
    const reaching = within(clock, { what: "reaching the store", limitMs: readLimitMs }, aheadMs());
    this.#showStore(await reaching.catch(() => undefined));
  }

  /** Undefined where it does not answer. */
  #showStore(aheadMs: Millis | undefined): void {
    this.#readable.set(aheadMs === undefined ? 0 : 1);
    if (aheadMs === undefined) this.#ahead.remove();
    else this.#ahead.set(aheadMs / 1000);
  }

  #show(pools: readonly PoolGauge[], nodes: readonly NodeGauge[]): void {
    for (const gauge of [this.#browsers, this.#waiters, this.#nodes]) gauge.reset();
    for (const { pool, states, waiting } of pools) {
      this.#waiters.set({ pool }, waiting);
      for (const [state, count] of Object.entries(states)) this.#browsers.set({ pool, state }, count);
    }
    for (const { state, count } of nodes) this.#nodes.set({ state }, count);
  }

  async #forgetAllBut(pools: ReadonlySet<string>): Promise<void> {
    for (const metric of [
      this.#wait,
      this.#launches,
      this.#launchFailures,
      this.#leasesEnded,
      this.#requests,
      this.#denied,
      this.#carried,
      ...this.scaling.perPool,
    ]) {
      const { values } = await metric.get();
      const gone = values
        .map(({ labels }) => withoutBucket(labels))
        .filter((labels) => !pools.has(String(labels["pool"])));
      for (const labels of gone) metric.remove(labels as never);
    }
  }

  #gauge(name: string, help: string, labelNames: string[]): Gauge {
    return new Gauge({ name, help, labelNames, registers: [this.#registry] });
  }
  #counter(name: string, help: string, labelNames: string[]): Counter {
    return new Counter({ name, help, labelNames, registers: [this.#registry] });
  }
}

type Labels = Partial<Record<string, string | number>>;
const withoutBucket = ({ le: _bound, ...labels }: Labels): Labels => labels;

const mostWords = 100;

/**
 * Values of a label that is a reason. A text in place of a word, and a word too many, would make a series of
 * its own each time.
 */
class ReasonLabels {
  readonly #known = new Set<string>();

  of(reason: string): string {
    if (this.#known.has(reason)) return reason;
    if (this.#known.size >= mostWords || !/^[a-z][a-z0-9_]{0,39}$/.test(reason)) return "other";
    this.#known.add(reason);
    return reason;
  }
}
