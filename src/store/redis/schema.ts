import { Cluster } from "ioredis";
import { CannotStart } from "../../base/cannot-start.js";
import { schemaKey } from "./keys.js";
import type { ScriptStore } from "./redis.js";

/** The layout of all keys. Raised when an older daemon could not read what a newer one writes. */
export const schema = 3;

/** Refuses a Redis that a daemon of another layout has written to; notes our number where it is new. */
export async function checkSchema(store: ScriptStore): Promise<void> {
  const text = await store.ask((redis) => redis.get(schemaKey));
  if (text !== null) refuseOther(text);
  if (text === null) await store.ask((redis) => redis.set(schemaKey, String(schema)));
}

function refuseOther(text: string): void {
  if (!/^\d{1,9}$/.test(text))
    throw new CannotStart(
      `Redis holds under ${schemaKey} what is no number of a schema: ` +
        "name a Redis that no other program writes to, or empty this one",
    );
  const found = Number(text);
  if (found > schema)
    throw new CannotStart(
      `Redis holds schema ${found}, written by a newer daemon; this one reads ${schema} only`,
    );
  if (found < schema)
    throw new CannotStart(
      `Redis holds schema ${found}, written by an older daemon; this one reads ${schema} only: ` +
        "let the older daemon end its sessions, then empty this Redis",
    );
}

/**
 * Refuses a Redis that removes keys when its memory is full: a key that it takes away is a lease or a pool
 * that nobody ended. A server that does not tell is taken as it is, as services that hide `INFO`.
 */
export async function checkEviction(store: ScriptStore): Promise<void> {
  const told = await store.ask((redis) =>
    Promise.all(
      (redis instanceof Cluster ? redis.nodes("master") : [redis]).map((one) => one.info("memory")),
    ),
  );
  const others = told.flatMap((text) => /^maxmemory_policy:(\S+)/m.exec(text)?.[1] ?? []);
  const wrong = others.find((policy) => policy !== "noeviction");
  if (wrong !== undefined)
    throw new CannotStart(
      `Redis has maxmemory-policy ${wrong}: it would remove leases and pools when its memory is full. ` +
        "Set maxmemory-policy noeviction there",
    );
}
