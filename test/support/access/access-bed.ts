import type Kernel from "@onkernel/sdk";
import type { Redis } from "ioredis";
import { afterAll, beforeAll } from "vitest";
import { type Daemon, DaemonClient, startDaemon } from "../daemon/daemon.js";
import type { Got } from "../http/http-server.js";
import { startRedis, type TestRedis } from "../store/redis.js";

interface Started {
  readonly redis: TestRedis;
  readonly client: Redis;
  readonly controls: readonly Daemon[];
}

/** A key beside its id. */
export interface MadeKey {
  readonly id: string;
  readonly key: string;
}

/** A command that is given up on a busy machine is tried again, and takes a request out of a rate twice. */
const patient = { redis: { command_timeout_ms: 60_000 } };

/** Controls on one Redis, and clients with keys of their own. */
export class AccessBed {
  #started: Started | undefined;

  async start(count: number, file: Record<string, unknown>): Promise<void> {
    const redis = await startRedis();
    const started = Array.from({ length: count }, () =>
      startDaemon({ role: "control", redisUrl: redis.url, file: { ...patient, ...file } }),
    );
    this.#started = { redis, client: redis.client(), controls: await Promise.all(started) };
  }

  async stop(): Promise<void> {
    const { controls, client, redis } = this.#running;
    for (const control of controls) await control.stop();
    client.disconnect();
    await redis.stop();
  }

  get #running(): Started {
    if (!this.#started) throw new Error("the bed is not started");
    return this.#started;
  }
  get redisUrl(): string {
    return this.#running.redis.url;
  }
  get redis(): Redis {
    return this.#running.client;
  }
  get controls(): readonly Daemon[] {
    return this.#running.controls;
  }
  /** With the root key. */
  get root(): Daemon {
    const [control] = this.controls;
    if (!control) throw new Error("there is no control");
    return control;
  }
  /** The official client with the root key. */
  get kernel(): Kernel {
    return this.root.kernel({ maxRetries: 0 });
  }

  /** Whoever shows this key, at one of the controls. */
  as = (key: string, control = 0): DaemonClient => new DaemonClient(this.controls[control]?.url ?? "", key);

  /** Whoever shows this, at a daemon of the test's own. */
  at = (url: string, bearer: string): DaemonClient => new DaemonClient(url, bearer);

  /** A key made by the root key, or by another. */
  async make(body: object = {}, by: DaemonClient = this.root): Promise<MadeKey> {
    const got: Got = await by.call("POST /org/api_keys", { name: "made", ...body });
    if (got.status !== 201) throw new Error(`no key was made: ${got.text}`);
    return got.body as MadeKey;
  }

  /** Everything that Redis holds and all that was logged, as one text. */
  async everythingKept(): Promise<string> {
    const texts = this.controls.map(({ log }) => log);
    for (const key of await this.redis.keys("*")) {
      texts.push(key, (await this.redis.dumpBuffer(key))?.toString("latin1") ?? "");
      const type = await this.redis.type(key);
      if (type === "hash") texts.push(JSON.stringify(await this.redis.hgetall(key)));
      if (type === "string") texts.push((await this.redis.get(key)) ?? "");
      if (type === "zset") texts.push(...(await this.redis.zrange(key, "0", "-1")));
      if (type === "stream") texts.push(JSON.stringify(await this.redis.xrange(key, "-", "+")));
    }
    return texts.join("\n");
  }
}

/** One for all tests of a file. */
export function sharedAccessBed(count = 1, file: Record<string, unknown> = {}): AccessBed {
  const bed = new AccessBed();
  beforeAll(() => bed.start(count, file));
  afterAll(() => bed.stop());
  return bed;
}
