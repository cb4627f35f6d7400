import { once } from "node:events";
import { Worker } from "node:worker_threads";

export interface TimingSite {
  readonly host: string;
  /** Every request so far: its path, and when it came (ms, as `wallMs`). */
  readonly requests: { readonly path: string; readonly at: number }[];
  close(): Promise<void>;
}

/** Comparable between threads. */
export const wallMs = (): number => performance.timeOrigin + performance.now();

export async function openTimingSite(): Promise<TimingSite> {
  const worker = new Worker(new URL("timing-site.mjs", import.meta.url));
  const [{ port }] = (await once(worker, "message")) as [{ port: number }];
  const requests: TimingSite["requests"] = [];
  worker.on("message", (request: TimingSite["requests"][number]) => requests.push(request));
  return {
    host: `127.0.0.1:${port}`,
    requests,
    async close() {
      const exited = once(worker, "exit");
      worker.postMessage("close");
      await exited;
    },
  };
}
