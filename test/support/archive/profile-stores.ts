import { afterAll, beforeAll } from "vitest";
import { defaultProject } from "../../../src/base/ids.js";
import { RedisProfileStore } from "../../../src/store/project/profile-store.js";
import { connectAlone } from "../../../src/store/redis/connect.js";
import { ScriptStore } from "../../../src/store/redis/redis.js";
import { silentLog } from "../browser/chromium-host.js";
import { startRedis, type TestRedis } from "../store/redis.js";
import { type S3Server, startS3Server } from "./s3-server.js";

export interface ProfileStores {
  readonly redis: TestRedis;
  readonly s3: S3Server;
  readonly profiles: RedisProfileStore;
}

/** One Redis and one S3 server for all tests of a file, there once its tests run. */
export function sharedProfileStores(): () => ProfileStores {
  let opened: { readonly stores: ProfileStores; readonly store: ScriptStore } | undefined;
  beforeAll(async () => {
    const [redis, s3] = await Promise.all([startRedis(), startS3Server()]);
    const store = new ScriptStore(
      connectAlone({ url: redis.url, isCluster: false, connectTimeoutMs: 2000, commandTimeoutMs: 10_000 }),
      silentLog,
    );
    await store.open(new AbortController().signal);
    opened = { stores: { redis, s3, profiles: new RedisProfileStore(store, defaultProject) }, store };
  });
  afterAll(async () => {
    await opened?.store.close();
    await Promise.all([opened?.stores.redis.stop(), opened?.stores.s3.close()]);
  });
  return () => {
    if (!opened) throw new Error("the stores are there once tests run");
    return opened.stores;
  };
}
