import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import type { NewEntry } from "../../../src/audit/entry.js";
import { RedisAuditStore } from "../../../src/store/organization/audit-store.js";
import { newEntry } from "../../support/audit/audit-bed.js";
import { onBoth } from "../../support/store/on-both.js";

const id = (): string => randomBytes(18).toString("base64url");
const asLong = (length: number): string => randomBytes(length).toString("base64url").slice(0, length);
/** Entries of which the shortest have nearly nothing, and the longest all that may be in one. */
const kinds: Readonly<Record<string, () => NewEntry>> = {
  short: () => newEntry({ userId: "", email: "", path: "/", route: "", domain: "", userAgent: "" }),
  usual: () =>
    newEntry({
      path: `/browser_pools/${id()}/acquire`,
      route: "/browser_pools/{id_or_name}/acquire",
      userAgent: "Kernel/JS 0.84.0",
    }),
  long: () => newEntry({ path: `/${asLong(1023)}`, userAgent: asLong(512), domain: asLong(255) }),
};
const [batches, each] = [60, 100];

onBoth("what entries need in Redis", ({ bed }) => {
  test.each(Object.entries(kinds))("is estimated well for %s ones", async (_, make) => {
    const audit = new RedisAuditStore(bed().store, 2 ** 30);
    for (let number = 1; number <= batches; number += 1)
      await audit.append({ writer: "one", number, entries: Array.from({ length: each }, make), sentAt: 5 });
    const { bytes, entries } = await audit.size();
    expect(entries).toBe(batches * each);
    const used = Number(
      await bed().redis.call("MEMORY", "USAGE", "remuda:{audit}:auditStream", "SAMPLES", "0"),
    );
    // docs/audit.md#where-it-is-kept
    expect(used / bytes).toBeGreaterThan(0.7);
    expect(used / bytes).toBeLessThan(1.2);
  });
});
