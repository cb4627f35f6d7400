import { afterEach, beforeEach } from "vitest";
import { type DaemonProcess, spawnDaemon } from "../daemon/daemon-process.js";
import { DaemonPlace, type DaemonOptions } from "../daemon/daemon-settings.js";
import { Fleet } from "../daemon/fleet.js";
import { openRedisProxy, type RedisProxy } from "../store/redis-proxy.js";
import { startRedis, type TestRedis } from "../store/redis.js";

type Settings = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/**
 * A Redis behind a proxy, and daemons in processes of their own: a fresh one of each for every test of the
 * file.
 */
export interface FaultBed {
  readonly redis: TestRedis;
  /** Daemons come through it unless they are started with another `redisUrl`. */
  readonly proxy: RedisProxy;
  start(
    role: "all" | "control" | "node",
    settings?: Settings,
    options?: Omit<DaemonOptions, "role" | "file">,
  ): Promise<DaemonProcess>;
  /** One that was killed, or has ended by itself, is not to be stopped. */
  gone(daemon: DaemonProcess): void;
}

const noDrain = { drain: { limit_seconds: 0 } };

/**
 * Has to be called once at the head of a file. After each test every daemon is stopped, nodes first, and
 * nothing may be left of it.
 */
export function useFaultBed(): FaultBed {
  let redis: TestRedis;
  let proxy: RedisProxy;
  let running: DaemonProcess[] = [];
  beforeEach(async () => {
    redis = await startRedis();
    proxy = await openRedisProxy(redis.url);
    running = [];
  });
  afterEach(async () => {
    for (const daemon of running.toReversed()) await daemon.stop();
    await proxy.close();
    await redis.stop();
  });
  return {
    get redis() {
      return redis;
    },
    get proxy() {
      return proxy;
    },
    async start(role, settings = {}, options = {}) {
      const place = new DaemonPlace({
        redisUrl: proxy.url,
        ...options,
        role,
        file: { ...noDrain, ...settings },
      });
      const daemon = await spawnDaemon(place);
      running.push(daemon);
      return daemon;
    },
    gone: (daemon) => void (running = running.filter((other) => other !== daemon)),
  };
}

/**
 * A fleet, and a proxy before its Redis that a test can slow down: fresh ones for every test of the file.
 */
export function useSlowRedisFleet(): { readonly fleet: Fleet; readonly proxy: RedisProxy } {
  let fleet: Fleet;
  let proxy: RedisProxy;
  beforeEach(async () => {
    fleet = await Fleet.open();
    proxy = await openRedisProxy(fleet.redis.url);
  });
  afterEach(async () => {
    proxy.delay(0);
    await fleet.close();
    await proxy.close();
  });
  return {
    get fleet() {
      return fleet;
    },
    get proxy() {
      return proxy;
    },
  };
}
