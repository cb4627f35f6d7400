import { schemaKey } from "./keys.js";
import type { ScriptStore } from "./redis.js";

/** The layout of all keys. Raised when an older daemon could not read what a newer one writes. */
const schema = 2;

/** Refuses a Redis that a daemon of another layout has written to; notes our number where it is new. */
export async function checkSchema(store: ScriptStore): Promise<void> {
  const text = await store.ask((redis) => redis.get(schemaKey));
  const found = text === null ? schema : Number(text);
  if (found > schema)
    throw new Error(`Redis holds schema ${found}, written by a newer daemon; this one reads ${schema} only`);
  if (found < schema)
    throw new Error(
      `Redis holds schema ${found}, written by an older daemon; this one reads ${schema} only: ` +
        "let the older daemon end its sessions, then empty this Redis",
    );
  if (text === null) await store.ask((redis) => redis.set(schemaKey, String(schema)));
}
