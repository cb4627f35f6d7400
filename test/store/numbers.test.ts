import { expect, test } from "vitest";
import type { ClaimId } from "../../src/base/ids.js";
import { LaunchTemplates } from "../../src/pool/launch-templates.js";
import { type Detached, detachReplica } from "../support/store/lost-writes.js";
import { onBoth } from "../support/store/on-both.js";
import { PoolBed } from "../support/store/pool-bed.js";
import { claimOf } from "../support/store/store-bed.js";

onBoth("after a failover that lost the last writes no number is given twice", ({ bed }) => {
  const detach = (pool: PoolBed): Promise<Detached> =>
    detachReplica(bed().redis, `remuda:*{${pool.partition}}:*`);

  test("claims: what is said under one that was lost is no word about the later one's", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    const held = await pool.lend();
    await pool.connect(held);
    const replica = await detach(pool);
    await pool.release(held);
    const lost = claimOf(await pool.record(held.id));
    await replica.takeOver();
    await pool.release(held);
    expect(await pool.record(held.id)).toMatchObject({ state: "resetting" });
    expect(await bed().reports.freed(held.id, lost)).toBe("stale");
    expect(await pool.state(held.id)).toBe("resetting");
    expect(await pool.freed(held.id)).toBe("freed");
  });

  test("revisions: a change of a configuration that was lost is not written over another", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    const replica = await detach(pool);
    await pool.update({ size: 2 });
    const { revision, revisedAt = 0 } = await pool.found();
    await replica.takeOver();
    pool.revision = 1;
    expect(await pool.update({ size: 3 })).toBe("updated");
    expect(pool.revision).toBe(revision);
    expect(await pool.update({ timeout_seconds: 99 }, { revisedAt })).toBe("changed");
    const now = await pool.found();
    expect(await pool.update({ timeout_seconds: 99 }, { revisedAt: now.revisedAt ?? 0 })).toBe("updated");
    expect((await pool.found()).spec).toMatchObject({ size: 3, timeout_seconds: 99 });
  });

  test("claims of launches", async () => {
    const pool = await PoolBed.create(bed(), { size: 1 });
    const replica = await detach(pool);
    const [lost] = await pool.claim(1);
    await replica.takeOver();
    const [again] = await pool.claim(1);
    expect(again?.claim).not.toBe(lost?.claim);
    expect(
      await bed().reports.launched(again?.id ?? ("" as never), lost?.claim ?? ("" as ClaimId), "{}"),
    ).toBe("stale");
  });

  test("launch templates: what was kept of a lost one is not taken for another's", async () => {
    const pool = await PoolBed.create(bed(), { size: 1 });
    const templates = new LaunchTemplates(bed().poolStore);
    const read = async (): Promise<boolean | undefined> =>
      (
        await templates.find(
          pool.partition,
          (await bed().poolStore.findTerms(pool.partition))?.templateKey ?? "",
        )
      )?.stealth;
    const replica = await detach(pool);
    await pool.update({ stealth: true }, { isNewLaunch: true });
    expect(await read()).toBe(true);
    await replica.takeOver();
    pool.revision = (await pool.found()).revision;
    await pool.update({ stealth: false, kiosk_mode: true }, { isNewLaunch: true });
    expect(await read()).toBe(false);
    const [browser] = await pool.claim(1);
    expect(await bed().poolStore.findTemplate(pool.partition, browser?.templateKey ?? "")).toMatchObject({
      kiosk_mode: true,
    });
  });

  test("registrations: a lease that was found inactive before is kept where a client has come since", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1, timeout_seconds: 10 });
    const held = await pool.lend();
    const replica = await detach(pool);
    await pool.connect(held);
    await replica.takeOver();
    await pool.age(11_000);
    await pool.connect(held);
    expect(await bed().reports.expire({ browser: held.id, lease: held.lease, registrations: 1 })).toBe(false);
    await pool.age(11_000);
    expect(await bed().reports.expire({ browser: held.id, lease: held.lease, registrations: 1 })).toBe(true);
  });
});
