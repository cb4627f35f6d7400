import { monitorEventLoopDelay } from "node:perf_hooks";
import { Gauge } from "prom-client";
import { droppedLines } from "./log-writer.js";

interface GaugeOptions {
  readonly name: string;
  readonly help: string;
  readonly labelNames?: string[];
}

const gaugeOf = (described: GaugeOptions, collect: (gauge: Gauge) => void): Gauge =>
  new Gauge({
    ...described,
    registers: [],
    collect() {
      collect(this);
    },
  });

/** What this process tells of itself. */
export const processGauges = (): Gauge[] => [
  gaugeOf(
    {
      name: "remuda_log_lines_dropped_total",
      help: "Lines of this process's log that were not written",
      labelNames: ["reason"],
    },
    (gauge) => {
      for (const [reason, lines] of Object.entries(droppedLines)) gauge.set({ reason }, lines);
    },
  ),
  gaugeOf(
    { name: "process_resident_memory_bytes", help: "Memory of this process, its browsers not counted" },
    (gauge) => gauge.set(process.memoryUsage.rss()),
  ),
  gaugeOf({ name: "nodejs_heap_size_used_bytes", help: "Of that, what JavaScript holds" }, (gauge) =>
    gauge.set(process.memoryUsage().heapUsed),
  ),
  gaugeOf(
    {
      name: "process_cpu_seconds_total",
      help: "Processor time this process has used, its browsers not counted",
    },
    (gauge) => {
      const { user, system } = process.cpuUsage();
      gauge.set((user + system) / 1e6);
    },
  ),
  loopDelay(),
];

/** A timer of this period is watched; Node.js counts the period with the delay. */
const watchedMs = 10;

function loopDelay(): Gauge {
  const delays = monitorEventLoopDelay({ resolution: watchedMs });
  delays.enable();
  const secondsOf = (nanos: number): number => Math.max(0, nanos / 1e9 - watchedMs / 1000);
  const described = {
    name: "remuda_event_loop_delay_seconds",
    labelNames: ["quantile"],
    help: "How late this process comes to what waits for it, since the last scrape: its own work and its wait for a processor",
  };
  return gaugeOf(described, (gauge) => {
    for (const quantile of [0.5, 0.99]) gauge.set({ quantile }, secondsOf(delays.percentile(quantile * 100)));
    gauge.set({ quantile: 1 }, secondsOf(delays.max));
    delays.reset();
  });
}
