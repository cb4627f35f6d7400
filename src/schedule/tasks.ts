import { Queue, Worker } from "bullmq";
import { within } from "../base/deadline.js";
import { textOf } from "../base/log.js";
import { storeFault } from "../base/store-fault.js";
import { type QueueOptions, reconnectMs, stalled } from "./queues.js";

interface TaskKind {
  /** The queue's. */
  readonly name: string;
  /** At most so many are under way here at once. */
  readonly atOnce: number;
  /** What it is about is named by its key. `stopping` aborts when it is to end early. */
  run(key: string, stopping: AbortSignal): Promise<void>;
}

export interface Tasks {
  /** Those of which there is one already, waiting or under way at any control, are left as they are. */
  add(keys: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

/** Work that any control may do, each piece at one of them at a time. One that throws is logged and gone. */
export async function startTasks(options: QueueOptions, kind: TaskKind): Promise<Tasks> {
  const { connection, prefix, log, clock, limitMs } = options;
  const { name, atOnce } = kind;
  const queue = new Queue(name, { connection, prefix, skipVersionCheck: true });
  queue.on("error", (error) => log.warn({ queue: name, error: error.message }, "queue failed"));
  const stopping = new AbortController();
  const running = new Set<Promise<void>>();
  const run = async (key: string): Promise<void> => {
    const work = kind.run(key, stopping.signal);
    running.add(work);
    await work.finally(() => running.delete(work));
  };
  const worker = new Worker(name, (job) => run(job.name), {
    connection,
    prefix,
    concurrency: atOnce,
    skipVersionCheck: true,
    runRetryDelay: reconnectMs,
    removeOnComplete: { count: 0 },
    removeOnFail: { count: 0 },
    ...stalled,
  });
  worker.on("error", (error) => log.warn({ queue: name, error: error.message }, "worker failed"));
  worker.on("failed", (job, error) =>
    log.warn({ queue: name, task: job?.name, error: textOf(error) }, "task failed"),
  );
  await worker.waitUntilReady();
  return {
    async add(keys) {
      // A job that is kept when done would swallow the next one under its id.
      const opts = { removeOnComplete: true, removeOnFail: true, attempts: 1 };
      const jobs = keys.map((key) => ({ name: key, data: null, opts: { ...opts, jobId: `task-${key}` } }));
      const added = queue.addBulk(jobs);
      await within(clock, { what: "adding tasks", limitMs }, added).catch((error: unknown) => {
        throw storeFault(error);
      });
    },
    async close() {
      stopping.abort();
      // What is under way ends first: what a worker leaves is taken for stalled, and nobody takes it up for a
      // while. BullMQ's own wait for it has no limit where Redis is away.
      const ended = Promise.allSettled(running);
      await within(clock, { what: "ending tasks", limitMs }, ended).catch(() => {});
      await worker.close(true);
      await queue.close();
    },
  };
}
