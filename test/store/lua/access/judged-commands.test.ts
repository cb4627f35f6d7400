import { afterAll, beforeAll, expect, test } from "vitest";
import { deferAdmission } from "../../../../src/access/deferred-admission.js";
import { rootPrincipal } from "../../../../src/access/principal.js";
import { refusal } from "../../../../src/base/errors.js";
import { defaultProject, newApiKeyId, newLeaseId } from "../../../../src/base/ids.js";
import type { Waiter } from "../../../../src/pool/ports/pool-store.js";
import { RedisApiKeyStore } from "../../../../src/store/organization/api-key-store.js";
import { controlA, heldOf, PoolBed } from "../../../support/store/pool-bed.js";
import { startRedis, type TestRedis } from "../../../support/store/redis.js";
import { openStoreBed, request, type StoreBed } from "../../../support/store/store-bed.js";

let server: TestRedis;
let bed: StoreBed;
beforeAll(async () => {
  server = await startRedis();
  bed = await openStoreBed(server, { project: "default", limits: { requestsPerMinute: 1 } });
});
afterAll(async () => {
  await bed.close();
  await server.stop();
});

const person = { id: "root", email: "root@remuda.invalid", name: null };
let count = 0;

/** An admission by a key that lets in one request, and what was asked about it apart from scripts. */
async function makeAdmission() {
  const keys = new RedisApiKeyStore(bed.store, {
    maxKeys: 99,
    maxDeletedKeys: 2,
    idempotencyMs: 60_000,
    requestsPerMinute: 1,
  });
  const digest = `digest-${(count += 1)}`;
  const drawn = { id: newApiKeyId(), digest, mask: "rmd_...wxyz", createdBy: person };
  await keys.create({ ...drawn, name: "one" }, { salt: "salt" });
  const asked: string[] = [];
  const look = async () => {
    asked.push(digest);
    return refusal("rate_limit_exceeded");
  };
  const admit = () =>
    deferAdmission({ principal: rootPrincipal(person), key: { digest, project: defaultProject }, look });
  return { admit, asked, remove: () => keys.remove(drawn.id, request()) };
}

const newWaiter = (): Waiter => {
  const id = request();
  return { id, lease: newLeaseId(), control: controlA, connection: id };
};

test("an acquire whose answer was lost is answered the same, though its key has nothing left", async () => {
  const pool = await PoolBed.filled(bed, { size: 2 });
  const { admit, asked } = await makeAdmission();
  const waiter = newWaiter();
  const ask = (by: Waiter) =>
    bed.poolStore.acquire(pool.partition, { pool: pool.id, waiter: by, mayWait: true, admission: admit() });
  const first = await ask(waiter);
  expect(first).toMatchObject({ kind: "granted" });
  expect(await ask(waiter)).toEqual(first);
  expect(asked).toEqual([]);
  const before = await pool.dump();
  expect(await ask(newWaiter())).toMatchObject({ kind: "refused", code: "rate_limit_exceeded" });
  expect(asked).toHaveLength(1);
  expect(await pool.dump()).toEqual(before);
});

test("so is a release; another of the same lease is judged", async () => {
  const pool = await PoolBed.filled(bed, { size: 1 });
  const { id: browser, lease } = heldOf((await pool.ask()).reply);
  const { admit, asked } = await makeAdmission();
  const ask = (by = request()) =>
    bed.poolStore.release(pool.partition, {
      browser,
      lease,
      reuse: true,
      why: "released",
      isRetry: false,
      request: by,
      admission: admit(),
    });
  const own = request();
  expect([await ask(own), await ask(own)]).toMatchObject([{ kind: "released" }, { kind: "released" }]);
  expect(asked).toEqual([]);
  expect(await ask()).toMatchObject({ kind: "refused", code: "rate_limit_exceeded" });
});

test("a key that has ended releases nothing", async () => {
  const pool = await PoolBed.filled(bed, { size: 1 });
  const { id: browser, lease } = heldOf((await pool.ask()).reply);
  const { admit, asked, remove } = await makeAdmission();
  await remove();
  const before = await pool.dump();
  const ask = { browser, lease, reuse: true, why: "released", isRetry: false, request: request() } as const;
  const got = await bed.poolStore.release(pool.partition, { ...ask, admission: admit() });
  expect(got).toMatchObject({ kind: "refused" });
  expect(asked).toHaveLength(1);
  expect(await pool.dump()).toEqual(before);
});

test("one admission is judged once, by the first script that is given it", async () => {
  const pool = await PoolBed.filled(bed, { size: 2 });
  const { admit, asked } = await makeAdmission();
  const admission = admit();
  const ask = () =>
    bed.poolStore.acquire(pool.partition, { pool: pool.id, waiter: newWaiter(), mayWait: false, admission });
  expect([await ask(), await ask()]).toMatchObject([{ kind: "granted" }, { kind: "granted" }]);
  expect(await admission.judge()).toMatchObject({ kind: "admitted", rate: { perMinute: 1, remaining: 0 } });
  expect(asked).toEqual([]);
});
