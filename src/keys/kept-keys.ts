import { LRUCache } from "lru-cache";
import type { Clock, Millis } from "../base/clock.js";
import type { KeyProvider } from "../vault/encryption/key-provider.js";

interface KeptKey {
  readonly bytes: Buffer;
  readonly until: Millis;
}

const keptMs: Millis = 60_000;
const mostKept = 500;

/** Asks a provider that is far away once a minute for each key; what is kept is overwritten afterwards. */
export function keepUnwrapped(provider: KeyProvider, clock: Clock): KeyProvider {
  const kept = new LRUCache<string, KeptKey>({ max: mostKept, dispose: ({ bytes }) => void bytes.fill(0) });
  return {
    isOwn: (wrapped) => provider.isOwn(wrapped),
    wrap: (bytes, context) => provider.wrap(bytes, context),
    async unwrap(wrapped, context) {
      const name = `${context} ${wrapped}`;
      const known = kept.get(name);
      if (known && clock.monotonic() < known.until)
        return { kind: "unwrapped", bytes: Buffer.from(known.bytes) };
      kept.delete(name);
      const got = await provider.unwrap(wrapped, context);
      if (got.kind === "unwrapped")
        kept.set(name, { bytes: Buffer.from(got.bytes), until: clock.monotonic() + keptMs });
      return got;
    },
  };
}
