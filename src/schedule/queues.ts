import type { Clock, Millis } from "../base/clock.js";
import { within } from "../base/deadline.js";
import { groupBy } from "../base/group-by.js";
import { type ConnectionOptions, Queue, Worker } from "bullmq";
import type { NodeId } from "../base/ids.js";
import { type Log, textOf } from "../base/log.js";
import { storeFault } from "../base/store-fault.js";
import type { Job, Jobs } from "../pool/ports/pool-store.js";

export interface QueueOptions {
  readonly connection: ConnectionOptions;
  readonly prefix: string;
  readonly log: Log;
  readonly clock: Clock;
  /** The limit of each command to a queue. */
  readonly limitMs: Millis;
}

/** The watch over the connection finds within so many limits that nothing is answered, and closes it. */
const replacedWithinLimits = 3;
const queueName = (node: NodeId): string => `node-${node}`;
// A job that is kept when done or failed silently swallows a re-add under its id; an id may not contain a
// colon.
const removed = { removeOnComplete: true, removeOnFail: true, attempts: 1 } as const;
const idOf = ({ kind, browser, claim }: Job): string => `${kind}-${browser}-${claim}`;

/** The queues that carry work to nodes. A job is a hint; the record is the truth. */
export class Queues implements Jobs {
  readonly #queues = new Map<NodeId, Queue<Job>>();

  constructor(private readonly options: QueueOptions) {}

  async add(jobs: readonly Job[]): Promise<void> {
    const byNode = groupBy(jobs, (job) => job.node);
    // The connection queues what it cannot send, without a limit. A job that comes late all the same does
    // nothing.
    await this.#within(
      "adding jobs",
      Promise.all(
        [...byNode].map(([node, theirs]) =>
          this.#queueOf(node).addBulk(
            theirs.map((job) => ({ name: job.kind, data: job, opts: { ...removed, jobId: idOf(job) } })),
          ),
        ),
      ),
    );
  }

  /**
   * A lost node's queue goes with it; so does what an earlier run of a node has left. Nobody comes again for
   * that of a node that stops: a connection that has died without a word is waited for until it is replaced,
   * and the drop has its own limit after that.
   */
  async drop(node: NodeId): Promise<void> {
    const limitMs = (replacedWithinLimits + 1) * this.options.limitMs;
    await this.#within("dropping a queue", this.#queueOf(node).obliterate({ force: true }), limitMs);
    await this.#queues.get(node)?.close();
    this.#queues.delete(node);
  }

  /** Lets go of queues of nodes that are no more; nodes may have a new name at each start. */
  async keep(nodes: readonly NodeId[]): Promise<void> {
    const gone = [...this.#queues].filter(([node]) => !nodes.includes(node));
    for (const [node] of gone) this.#queues.delete(node);
    await Promise.all(gone.map(([, queue]) => queue.close()));
  }

  async close(): Promise<void> {
    await Promise.all([...this.#queues.values()].map((queue) => queue.close()));
  }

  async #within<Value>(what: string, work: Promise<Value>, limitMs = this.options.limitMs): Promise<Value> {
    try {
      return await within(this.options.clock, { what, limitMs }, work);
    } catch (error) {
      throw storeFault(error);
    }
  }

  #queueOf(node: NodeId): Queue<Job> {
    const { connection, prefix, log } = this.options;
    const known = this.#queues.get(node);
    if (known) return known;
    const queue = new Queue<Job>(queueName(node), { connection, prefix, skipVersionCheck: true });
    queue.on("error", (error) => log.warn({ node, error: error.message }, "queue failed"));
    this.#queues.set(node, queue);
    return queue;
  }
}

/** A node takes so many jobs at once; it bounds itself what they do (p-queue). */
const jobsAtOnce = 256;

export interface RunningWorker {
  close(): Promise<void>;
}

/** Takes the jobs of one node. A job that throws is logged and gone: the tick claims anew. */
export async function startWorker(
  options: QueueOptions,
  node: NodeId,
  run: (job: Job) => Promise<void>,
): Promise<RunningWorker> {
  const { connection, prefix, log } = options;
  const worker = new Worker<Job>(queueName(node), (job) => run(job.data), {
    connection,
    prefix,
    concurrency: jobsAtOnce,
    skipVersionCheck: true,
    runRetryDelay: reconnectMs,
    ...removedByWorker,
  });
  worker.on("error", (error) => log.warn({ node, error: error.message }, "worker failed"));
  worker.on("failed", (job, error) => log.warn({ node, job: job?.id, error: textOf(error) }, "job failed"));
  await worker.waitUntilReady();
  return { close: () => worker.close(true) };
}

/**
 * A worker of BullMQ waits so long after a lost connection before it asks again; BullMQ's default is 15 s.
 */
export const reconnectMs: Millis = 1000;
/**
 * A control that is killed leaves what it was about as active jobs. Another worker of BullMQ's takes one for
 * stalled when its lock has lapsed and two looks have found it so, runs it again and removes it: by its
 * defaults, 30 s each, after a minute and more.
 */
export const stalled = { lockDuration: 10_000, stalledInterval: 5000 } as const;
const removedByWorker = { removeOnComplete: { count: 0 }, removeOnFail: { count: 0 } };
