import type { TelemetryEvent } from "../../../src/telemetry/event.js";
import { until } from "../browser/chromium-until.js";
import type { DaemonClient, Lease } from "../daemon/daemon.js";

type Session = Pick<Lease, "session_id">;
interface Wanted {
  readonly type: string;
  readonly holds?: (data: TelemetryEvent["data"]) => boolean;
  readonly limitMs?: number;
}

/** The first hundred events of a session, or those of some types, as its holder reads them afterwards. */
export async function toldTo(
  daemon: DaemonClient,
  { session_id: id }: Session,
  ...types: readonly string[]
): Promise<readonly TelemetryEvent[]> {
  const only = types.length > 0 ? `&type=${types.join(",")}` : "";
  const { body } = await daemon.call(`GET /browsers/${id}/telemetry/events?limit=100&since=1h${only}`);
  return Array.isArray(body) ? (body as { event: TelemetryEvent }[]).map(({ event }) => event) : [];
}

/** The first event of a type for whose data it holds, once it is told. */
export const toldWhen = (
  daemon: DaemonClient,
  session: Session,
  { type, holds = () => true, limitMs }: Wanted,
): Promise<TelemetryEvent> =>
  until(
    `${type} is told`,
    async () => (await toldTo(daemon, session, type)).find(({ data }) => holds(data)),
    limitMs,
  );
