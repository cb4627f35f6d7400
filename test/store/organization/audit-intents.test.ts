import { expect, test } from "vitest";
import { RedisAuditStore } from "../../../src/store/organization/audit-store.js";
import { newEntry } from "../../support/audit/audit-bed.js";
import { onBoth } from "../../support/store/on-both.js";

const intents = "remuda:{audit}:auditIntents";

onBoth("intents of changes", ({ bed }) => {
  const open = (mostBytes = 2 ** 20) => new RedisAuditStore(bed().store, mostBytes);
  const note = (audit: RedisAuditStore, id: string, path: string) =>
    audit.noteIntent({ id, entry: newEntry({ path, status: 0, receivedAt: 1000 }), sentAt: 6000 });
  const pathsIn = async (audit: RedisAuditStore): Promise<string[]> =>
    (await audit.oldest(undefined, 100)).map(({ path }) => path);

  test("one is gone with its entry, also where that comes again", async () => {
    const audit = open();
    expect(await note(audit, "one", "/1")).toBe("noted");
    const batch = {
      writer: "writer",
      number: 1,
      entries: [newEntry({ path: "/1", intent: "one" })],
      sentAt: 5,
    };
    await audit.append(batch);
    await audit.append(batch);
    expect(await bed().redis.hlen(intents)).toBe(0);
    expect(await audit.settleIntents(0)).toBe(0);
    expect(await pathsIn(audit)).toEqual(["/1"]);
  });

  test("one of which nothing is heard becomes an entry once, received when its request was", async () => {
    const audit = open();
    await note(audit, "one", "/1");
    await note(audit, "two", "/2");
    expect(await audit.settleIntents(60_000)).toBe(0);
    expect(await Promise.all([audit.settleIntents(0), audit.settleIntents(0)])).toContain(2);
    const found = await audit.oldest(undefined, 100);
    expect(found.map(({ path }) => path).sort()).toEqual(["/1", "/2"]);
    for (const { status, at, position } of found) {
      expect(status).toBe(0);
      expect(Number(position.slice(0, 13)) - at).toBeGreaterThanOrEqual(4999);
    }
    expect((await audit.size()).bytes).toBeGreaterThan(100);
    expect(await audit.settleIntents(0)).toBe(0);
  });

  test("where the log is full none is noted, and what was noted before comes into it yet", async () => {
    const audit = open(300);
    await note(audit, "one", "/1");
    await audit.append({
      writer: "writer",
      number: 1,
      entries: [newEntry({ path: "/".padEnd(300, "x") })],
      sentAt: 5,
    });
    expect(await note(audit, "two", "/2")).toBe("full");
    expect(await audit.settleIntents(0)).toBe(1);
    expect(await pathsIn(audit)).toContain("/1");
  });
});
