import { Redis } from "ioredis";
import type { ApiKey } from "../../../src/access/api-key.js";
import { keyDigestOf, makeKeyText, maskOf, newKeySalt } from "../../../src/base/crypto/key-text.js";
import { Secret } from "../../../src/base/crypto/secret.js";
import { newApiKeyId } from "../../../src/base/ids.js";
import { RedisApiKeyStore } from "../../../src/store/organization/api-key-store.js";
import { ScriptStore } from "../../../src/store/redis/redis.js";
import { silentLog } from "../../support/browser/chromium-host.js";
import { times } from "../support/runs.js";

const atOnce = 1000;

/** Writes so many keys as the API does, without a request for each. */
export async function writeKeys(socket: string, count: number): Promise<void> {
  const store = new ScriptStore(new Redis(socket), silentLog);
  const limits = { maxKeys: 2 ** 31, maxDeletedKeys: 0, idempotencyMs: 1, requestsPerMinute: null };
  const keys = new RedisApiKeyStore(store, limits);
  for (let made = 0; made < count; made += atOnce)
    await Promise.all(times(atOnce).map(() => keys.create(newKey(), { salt: newKeySalt() })));
  await store.close();
}

function newKey(): ApiKey {
  const text = makeKeyText(new Secret("a-secret-of-the-benches"), newKeySalt()).reveal();
  return {
    id: newApiKeyId(),
    name: "bench",
    digest: keyDigestOf(text),
    mask: maskOf(text),
    createdAt: 0,
    createdBy: { id: "root", email: "root@remuda.invalid", name: null },
    lifetimeDays: 1,
  };
}
