import { once } from "node:events";
import { Worker } from "node:worker_threads";

export interface TimingSite {
  readonly host: string;
  /** When each request of a path has come so far (ms, on the site's own clock). */
  arrivals(path: string): readonly number[];
  close(): Promise<void>;
}

export async function openTimingSite(): Promise<TimingSite> {
  const worker = new Worker(new URL("timing-site.mjs", import.meta.url));
  const [{ port }] = (await once(worker, "message")) as [{ port: number }];
  const arrivals = new Map<string, number[]>();
  worker.on("message", ({ path, at }: { path: string; at: number }) => {
    const known = arrivals.get(path);
    if (known) known.push(at);
    else arrivals.set(path, [at]);
  });
  return {
    host: `127.0.0.1:${port}`,
    arrivals: (path) => arrivals.get(path) ?? [],
    async close() {
      const exited = once(worker, "exit");
      worker.postMessage("close");
      await exited;
    },
  };
}
