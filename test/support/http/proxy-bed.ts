import type Kernel from "@onkernel/sdk";
import type { Redis } from "ioredis";
import { afterAll, beforeAll, expect } from "vitest";
import { pictureOf } from "../store/picture.js";
import { type Daemon, startDaemon } from "../daemon/daemon.js";
import { type Dns, startDns } from "../egress/dns-server.js";
import { type Origin, startHttpProxy, startOrigin, type UpstreamProxy } from "../egress/upstream-proxies.js";
import { startRedis, type TestRedis } from "../store/redis.js";

/** What the upstream proxy asks for. */
export const credentials = { username: "me", password: "hunter2-of-this-suite" };

interface Started {
  readonly redis: TestRedis;
  readonly client: Redis;
  readonly dns: Dns;
  readonly origin: Origin;
  readonly upstream: UpstreamProxy;
  readonly daemon: Daemon;
  readonly kernel: Kernel;
}

async function start(): Promise<Started> {
  const [redis, dns, origin, upstream] = await Promise.all([
    startRedis(),
    startDns({ "origin.example": ["93.184.216.34"], "inside.example": ["10.0.0.7"] }),
    startOrigin(),
    startHttpProxy({ credentials }),
  ]);
  const egress = {
    check_url: `http://127.0.0.1:${origin.port}/mine`,
    // Only what never answers takes so long; on a busy machine a check has taken more than two seconds.
    check_limit_seconds: 6,
    resolvers: [dns.server],
  };
  const daemon = await startDaemon({
    role: "control",
    redisUrl: redis.url,
    file: { egress, limits: { max_proxies: 40 } },
  });
  return { redis, client: redis.client(), dns, origin, upstream, daemon, kernel: daemon.kernel() };
}

/** A control with its Redis, an upstream proxy, an origin behind it and a resolver. */
export class ProxyBed {
  #started: Started | undefined;

  async start(): Promise<void> {
    this.#started = await start();
  }

  async stop(): Promise<void> {
    const { daemon, client, redis, dns, origin, upstream } = this.#running;
    await daemon.stop();
    client.disconnect();
    await Promise.all([redis.stop(), dns.close(), origin.close(), upstream.close()]);
  }

  get #running(): Started {
    if (!this.#started) throw new Error("the bed is not started");
    return this.#started;
  }
  get client(): Redis {
    return this.#running.client;
  }
  get origin(): Origin {
    return this.#running.origin;
  }
  get upstream(): UpstreamProxy {
    return this.#running.upstream;
  }
  get daemon(): Daemon {
    return this.#running.daemon;
  }
  /** The official client. */
  get kernel(): Kernel {
    return this.#running.kernel;
  }

  /** The configuration of a proxy at the upstream's address. */
  place = (over: object = {}) => ({ host: "127.0.0.1", port: this.upstream.port, ...over });

  create = async (over: Partial<Kernel.ProxyCreateParams> = {}, config: object = {}): Promise<string> =>
    (
      await this.kernel.proxies.create({
        type: "custom",
        protocol: "http",
        config: this.place(config),
        ...over,
      })
    ).id ?? "";

  /** The faults that a body is refused with. */
  detailsOf = async (operation: string, body: object): Promise<string[]> => {
    const got = await this.daemon.call(operation, body);
    expect(got).toMatchObject({ status: 400, body: { code: "bad_request" } });
    return got.body.details.map(({ message }: { message: string }) => message);
  };

  /** All that Redis holds under such keys, as one text. */
  contents = async (keys = "*"): Promise<string> =>
    JSON.stringify(
      await Promise.all(
        (await this.client.keys(keys))
          .toSorted()
          .map(async (key) => [key, await pictureOf(this.client, key)]),
      ),
    );
}

/** One for all tests of a file. */
export function sharedProxyBed(): ProxyBed {
  const bed = new ProxyBed();
  beforeAll(() => bed.start());
  afterAll(() => bed.stop());
  return bed;
}
