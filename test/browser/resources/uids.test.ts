import { expect, test } from "vitest";
import { openUids } from "../../../src/browser/resources/uids.js";

test.runIf(process.platform === "linux")(
  "daemons whose bases differ by less than a block hold blocks that do not overlap",
  async () => {
    const [earlier, later] = [await openUids(3_000_500), await openUids(3_000_000)];
    const next = await openUids(3_000_000);
    try {
      const taken = [earlier, later, next].map((uids) => uids.take());
      expect(new Set(taken).size).toBe(3);
      for (const uid of taken)
        expect([earlier, later, next].filter((uids) => uids.owns(uid))).toHaveLength(1);
      expect(earlier.owns(3_000_499)).toBe(false);
    } finally {
      await Promise.all([earlier, later, next].map((uids) => uids.close()));
    }
  },
);
