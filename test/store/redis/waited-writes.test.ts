import { expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import { AppendWait } from "../../../src/store/redis/append-wait.js";
import { connectAlone } from "../../../src/store/redis/connect.js";
import { DurableWrites } from "../../../src/store/redis/durable-writes.js";
import { ScriptStore } from "../../../src/store/redis/redis.js";
import { silentLog } from "../../support/browser/chromium-host.js";
import { startRedis } from "../../support/store/redis.js";
import { isWaitedFor } from "../../support/store/waited-for.js";

test("a server that syncs once a second is waited for where it answers after the sync; any other is not written to", async () => {
  const server = await startRedis();
  const options = { url: server.url, isCluster: false, connectTimeoutMs: 2000, commandTimeoutMs: 10_000 };
  const store = new ScriptStore(connectAlone(options), silentLog);
  await store.open(new AbortController().signal);
  const ask = (...[name = "", ...words]: readonly string[]) =>
    store.ask((redis) => redis.call(name, ...words));
  await ask("CONFIG", "SET", "appendonly", "yes");
  await ask("CONFIG", "SET", "appendfsync", "everysec");
  await expect.poll(() => ask("INFO", "persistence")).toMatch(/aof_enabled:1[^]*aof_rewrite_in_progress:0/);
  const writes = new DurableWrites(store, {
    wait: new AppendWait(options),
    allowsLoss: false,
    clock: systemClock,
  });
  const write = (): Promise<unknown> => writes.write(() => ask("SET", "kept", "written"));
  if (isWaitedFor(String(await ask("INFO", "server")))) {
    await write();
    expect(writes.knownSafety()).toBe("durable");
    // All that this connection has written is on the disk by now.
    expect(await ask("WAITAOF", "1", "0", "1")).toEqual([1, 0]);
  } else {
    await expect(write()).rejects.toMatchObject({ code: "not_supported" });
    expect(writes.knownSafety()).toBe("refused");
    expect(await ask("GET", "kept")).toBeNull();
  }
  await store.close();
  await server.stop();
});
