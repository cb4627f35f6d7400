import type { EventCategory, SeenEvent } from "../../../src/telemetry/event.js";
import type { WatchSink } from "../../../src/telemetry/monitor/monitor.js";
import { until } from "../browser/chromium-until.js";

type Data = SeenEvent["data"];

/** Keeps what it is told, in order. */
export class SeenEvents implements WatchSink {
  readonly all: SeenEvent[] = [];
  /** Targets that are watched no more. */
  readonly leftTargets: string[] = [];

  wants(_category: EventCategory): boolean {
    return true;
  }

  /** Nothing more is taken but what counts lost events. */
  isFull = false;

  emit(event: SeenEvent): boolean {
    const isTaken = !this.isFull || event.countsLost === true;
    if (isTaken) this.all.push(event);
    return isTaken;
  }

  left(targetId: string): void {
    this.leftTargets.push(targetId);
  }

  of(type: string, holds: (data: Data) => boolean = () => true): SeenEvent[] {
    return this.all.filter((event) => event.type === type && holds(event.data));
  }

  /** Waits for the first event of a type for whose data it holds. */
  find(type: string, holds: (data: Data) => boolean = () => true): Promise<SeenEvent> {
    return until(`event ${type}`, () => this.of(type, holds)[0]);
  }
}
