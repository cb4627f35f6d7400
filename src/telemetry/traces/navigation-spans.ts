import type { Clock, Millis } from "../../base/clock.js";
import { childOf } from "../../base/trace-context.js";
import type { EventCategory, LeaseSink, SeenEvent } from "../event.js";
import type { WatchSink } from "../monitor/monitor.js";
import { wallShift } from "./span.js";

interface Navigation {
  readonly startedAt: Millis;
  readonly hasFailed: boolean;
  readonly data: SeenEvent["data"];
}

/**
 * How a navigation was over: its page is loaded, shows another document, has crashed, or is watched no more.
 */
type NavigationEnd = "loaded" | "superseded" | "crashed" | "left";

/** More pages than this are not told of at once. */
const mostPages = 256;

/**
 * Passes a browser's events on, and makes spans of the navigations among them: from when the document is
 * asked for, where that was seen, until it is loaded. So a span says no more than the events of the category
 * `page` do, and is there where they are.
 */
export class NavigationSpans implements WatchSink {
  readonly #open = new Map<unknown, Navigation>();
  #shift: Millis;

  constructor(
    private readonly sink: LeaseSink,
    private readonly clock: Pick<Clock, "now" | "monotonic">,
  ) {
    this.#shift = wallShift(clock);
  }

  wants(category: EventCategory): boolean {
    return this.sink.wants(category);
  }

  emit(event: SeenEvent): boolean {
    if (event.category === "page" && this.sink.trace && this.sink.wants("page")) this.#see(event);
    return this.sink.emit(event);
  }

  left(target: string): void {
    this.#end(target, "left");
  }

  /** Nothing more is seen of what is open. */
  close(): void {
    for (const target of this.#open.keys()) this.#end(target, "left");
  }

  #see(event: SeenEvent): void {
    const { type, data } = event;
    const target = data["target_id"];
    switch (type) {
      case "page_navigation":
        return this.#begin(target, event);
      case "page_load":
        return this.#end(target, "loaded");
      case "page_crashed":
        return this.#end(target, "crashed");
    }
  }

  #begin(target: unknown, { data, navigation }: SeenEvent): void {
    if (data["target_type"] !== "page" || data["parent_frame_id"] !== undefined) return;
    this.#end(target, "superseded");
    const { startedAt = this.clock.monotonic(), hasFailed = false } = navigation ?? {};
    if (this.#open.size < mostPages) this.#open.set(target, { startedAt, hasFailed, data });
  }

  #end(target: unknown, end: NavigationEnd): void {
    const open = this.#open.get(target);
    this.#open.delete(target);
    const parent = this.sink.trace;
    if (!open || !parent) return;
    // A lease may last for days: where the wall clock is put forward, as when a virtual machine goes on,
    // spans follow it. Where it is put back they do not, since none may begin before its parent.
    this.#shift = Math.max(this.#shift, wallShift(this.clock));
    this.sink.span({
      name: "navigation",
      context: childOf(parent),
      parent,
      startedAt: this.#shift + open.startedAt,
      endedAt: this.#shift + this.clock.monotonic(),
      attributes: {
        "url.full": String(open.data["url"] ?? ""),
        "remuda.target.id": String(target),
        "remuda.navigation.end": end,
      },
      failure: failureOf(open, end),
    });
  }
}

function failureOf({ hasFailed }: Navigation, end: NavigationEnd): string | undefined {
  if (end === "crashed") return "the page has crashed";
  return hasFailed ? "the document could not be loaded" : undefined;
}
