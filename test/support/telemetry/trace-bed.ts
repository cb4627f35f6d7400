import { until } from "../browser/chromium-until.js";
import type { DaemonClient, Lease } from "../daemon/daemon.js";
import { OtlpReceiver, type ReceivedSpan } from "./otlp-receiver.js";

/** What is typed, and stands in addresses that no category may tell. */
export const secret = "zqsecretzq";
/** Settings of a daemon that exports to collectors of tests, at once. */
export const exportSettings = { telemetry: { export: { private_hosts: ["127.0.0.1"], delay_ms: 20 } } };

let last = 0;
/** A caller's own span, and the header that says so. */
export function callerSpan(flags = "01") {
  last += 1;
  const digits = last.toString(16);
  const [traceId, spanId] = [digits.padStart(32, "a"), digits.padStart(16, "b")];
  return { traceId, spanId, headers: { traceparent: `00-${traceId}-${spanId}-${flags}` } };
}

/** A collector of one test's own, to which sessions of a daemon export. */
export class TraceBed {
  readonly receiver = new OtlpReceiver();

  constructor(private readonly daemon: DaemonClient) {}

  /** What a telemetry's `export` says. */
  async start(name: string): Promise<object> {
    await this.receiver.start();
    const endpoint = `${this.receiver.url}/otlp`;
    const made = await this.daemon.call("POST /telemetry/destinations", { name, endpoint });
    return { otlp: { destination: { id: made.body.id } } };
  }

  async acquire(pool: string, headers: Record<string, string> = {}): Promise<Lease> {
    const path = `POST /browser_pools/${pool}/acquire`;
    const { status, body, text } = await this.daemon.call(path, { acquire_timeout_seconds: 60 }, headers);
    if (status !== 200) throw new Error(`not acquired: ${status} ${text}`);
    return body as Lease;
  }

  async release({ session_id }: Lease, pool: string): Promise<void> {
    await this.daemon.call(`POST /browser_pools/${pool}/release`, { session_id });
  }

  /** The span of that name that fits, once it is there. */
  span(name: string, fits: (span: ReceivedSpan) => boolean = () => true): Promise<ReceivedSpan> {
    const find = () => this.receiver.spans.find((span) => span.name === name && fits(span));
    return until(`a span ${name}`, find, 30_000);
  }

  /** All bytes that have arrived. */
  get sent(): string {
    return this.receiver.requests.map(({ bytes }) => bytes.toString("latin1")).join("\n");
  }
}
