import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { positionBefore } from "../../../src/audit/entry.js";
import { newDestinationId, newRequestId } from "../../../src/base/ids.js";
import { type Cloud, startCloud } from "../../support/audit/cloud.js";
import { openExportBed, valueOf } from "../../support/audit/export-bed.js";
import { destinationBody, roleArn } from "../../support/http/recorded-audit.js";
import { onBoth } from "../../support/store/on-both.js";

let cloud: Cloud;
beforeAll(async () => {
  cloud = await startCloud();
});
afterAll(async () => {
  await cloud.close();
});
beforeEach(async () => {
  cloud.roles.clear();
  cloud.asked.length = 0;
  cloud.puts.length = 0;
  cloud.faults.length = 0;
});
onBoth("export destinations", ({ bed }) => {
  const open = (options: Parameters<typeof openExportBed>[2] = {}) => openExportBed(bed(), cloud, options);

  test("a destination is made paused, with an external id of its own each time", async () => {
    const { make, operations } = open();
    const [one, other] = [await make(), await make({ prefix: "", kms_key_id: "alias/logs" })];
    expect(one).toMatchObject({ status: "paused", revision: 1, failures: 0, roleArn });
    expect(one.cursor).toBeUndefined();
    expect(one.externalId).toMatch(/^[0-9A-Za-z]{32}$/);
    expect(other.externalId).not.toBe(one.externalId);
    expect(other).toMatchObject({ prefix: "", kmsKeyId: "alias/logs" });
    expect(valueOf(await operations.get(one.id))).toEqual(one);
    expect((await operations.all()).map(({ id }) => id).toSorted()).toEqual([one.id, other.id].toSorted());
  });

  test("there are as many as there may be; a deleted one does not count", async () => {
    const { make, operations } = open({ most: 1 });
    const { id } = await make();
    expect(await operations.create(destinationBody())).toMatchObject({ code: "limit_exceeded" });
    expect(await operations.remove(id, newRequestId())).toMatchObject({ kind: "done" });
    await make();
    expect(await operations.all()).toHaveLength(1);
  });

  test("activation begins at its own instant, a pause forgets the place, and other changes keep it", async () => {
    const { make, operations } = open();
    const { id } = await make();
    const before = await bed().store.now();
    const active = valueOf(await operations.update(id, { status: "active" }));
    expect(Number(active.cursor?.slice(0, 13))).toBeGreaterThanOrEqual(before - 1);
    const moved = valueOf(await operations.update(id, { bucket: "other" }));
    expect(moved).toMatchObject({ bucket: "other", cursor: active.cursor, status: "active" });
    const paused = valueOf(await operations.update(id, { status: "paused" }));
    expect(paused.cursor).toBeUndefined();
    const resumed = valueOf(await operations.update(id, { status: "active" }));
    expect(String(resumed.cursor) >= String(active.cursor)).toBe(true);
  });

  test("a change that is asked for again, since its answer was lost, is answered the same and made once", async () => {
    const { make, operations, destinations } = open();
    const made = await make();
    const { status, region, prefix } = made;
    const change = { status, region, prefix, roleArn, bucket: "other" };
    const first = await destinations.change(made, change);
    expect(first).toMatchObject({ bucket: "other", revision: 2 });
    expect(await destinations.change(made, change)).toEqual(first);
    expect(valueOf(await operations.get(made.id))).toEqual(first);
  });

  test("a change that others have overtaken is a conflict, and changes nothing", async () => {
    const { make, operations, destinations } = open();
    const made = await make();
    valueOf(await operations.update(made.id, { bucket: "other" }));
    const { status, region, prefix } = made;
    const late = await destinations.change(made, { status, region, prefix, roleArn, bucket: "late" });
    expect(late).toBe("stale");
    expect(valueOf(await operations.get(made.id))).toMatchObject({ bucket: "other", revision: 2 });
  });

  test("a cursor is moved, and a failure noted, only by who knows the destination as it is", async () => {
    const { make, operations, destinations } = open();
    const { id } = await make();
    const active = valueOf(await operations.update(id, { status: "active" }));
    const to = positionBefore((await bed().store.now()) + 5000);
    expect(await destinations.move(active, to, "delivered")).toBe("moved");
    // Another was faster.
    expect(await destinations.move(active, to, "delivered")).toBe("stale");
    const moved = valueOf(await operations.get(id));
    const failure = { why: "It is away", delayMs: 60_000 };
    expect(await destinations.fail(moved, failure)).toBe("noted");
    const changed = valueOf(await operations.update(id, { bucket: "other" }));
    expect(changed.nextAttemptAt).toBeUndefined();
    const late = { ...moved, cursor: to };
    expect(await destinations.move(late, positionBefore(Date.now()), "delivered")).toBe("stale");
    expect(await destinations.fail(moved, failure)).toBe("stale");
    const paused = valueOf(await operations.update(id, { status: "paused" }));
    expect(await destinations.move({ ...paused, cursor: to }, to, "delivered")).toBe("stale");
    expect(valueOf(await operations.get(id))).toEqual(paused);
  });

  test("what is wrong with the whole of it after a change is refused, and changes nothing", async () => {
    const { make, operations } = open();
    const { id } = await make({ kms_key_id: "arn:aws:kms:us-east-1:123456789012:alias/logs" });
    expect(await operations.update(id, { region: "us-east-2" })).toMatchObject({
      code: "bad_request",
      details: [{ code: "invalid_input", message: expect.stringMatching(/^kms_key_id: /) }],
    });
    expect(valueOf(await operations.get(id))).toMatchObject({ region: "us-east-1", revision: 1 });
  });

  test("a deleted destination is there for nobody; the same deletion again is answered the same", async () => {
    const { make, operations } = open();
    const { id } = await make();
    const request = newRequestId();
    expect(await operations.remove(id, request)).toMatchObject({ kind: "done" });
    expect(await operations.remove(id, request)).toMatchObject({ kind: "done" });
    const missing = { kind: "refused", code: "not_found" };
    expect(await operations.remove(id, newRequestId())).toMatchObject(missing);
    expect(await operations.get(id)).toMatchObject(missing);
    expect(await operations.update(id, { status: "active" })).toMatchObject(missing);
    expect(await operations.test(id)).toMatchObject(missing);
    expect(await operations.get(newDestinationId())).toMatchObject(missing);
    expect(await operations.get("nonsense")).toMatchObject(missing);
    expect(await operations.all()).toEqual([]);
  });

  test("of deleted ones so many records stay, the newest", async () => {
    const { make, operations } = open();
    for (let count = 0; count < 103; count += 1) await operations.remove((await make()).id, newRequestId());
    expect(await bed().redis.hlen("remuda:{audit}:destinations")).toBe(100);
  });

  test("without a role of its own a deployment takes no destination, and makes none active", async () => {
    const { id } = await open().make();
    const { operations } = open({ serviceRoleArn: null });
    expect(await operations.create(destinationBody())).toMatchObject({ code: "not_supported" });
    expect(await operations.update(id, { status: "active" })).toMatchObject({ code: "not_supported" });
    expect(await operations.test(id)).toMatchObject({ code: "not_supported" });
    expect(await operations.update(id, { prefix: "" })).toMatchObject({ kind: "done" });
  });

  test("a trial assumes the role with the external id, puts an object as a delivery does, and removes it", async () => {
    const { trusting, operations } = open();
    const { id, externalId } = await trusting({ kms_key_id: "alias/logs" });
    expect(valueOf(await operations.test(id))).toEqual({ stage: "complete" });
    const [put, ...more] = cloud.puts;
    expect(more).toEqual([]);
    expect(put?.key).toMatch(/^remuda\/\.remuda-audit-log-export-test-[0-9A-Za-z]{16}\.jsonl\.gz$/);
    expect(put?.headers).toMatchObject({
      "content-type": "application/gzip",
      "x-amz-server-side-encryption": "aws:kms",
      "x-amz-server-side-encryption-aws-kms-key-id": "alias/logs",
    });
    expect([...(await cloud.objects()).keys()]).toEqual([]);
    expect(cloud.faults).toEqual([]);
    const [first, second] = cloud.asked.map((form) => Object.fromEntries(form));
    expect(first).toMatchObject({
      RoleArn: roleArn,
      RoleSessionName: `remuda-${id}`,
      DurationSeconds: "900",
      ExternalId: externalId,
    });
    const { Statement } = JSON.parse(first?.["Policy"] ?? "{}") as { Statement: Record<string, unknown>[] };
    expect(Statement[0]).toEqual({
      Effect: "Allow",
      Action: ["s3:PutObject", "s3:DeleteObject"],
      Resource: "arn:aws:s3:::archives/remuda/.remuda-audit-log-export-test-*",
    });
    // Then whether it would let anyone in.
    expect(second).toMatchObject({ RoleArn: roleArn });
    expect(second).not.toHaveProperty("ExternalId");
  });

  test("a trial says at which stage it has failed, in words that tell no secret", async () => {
    const { make, trusting, operations } = open();
    const unknown = await make({ role_arn: `${roleArn}-of-nobody` });
    expect(valueOf(await operations.test(unknown.id))).toEqual({
      stage: "assume_role",
      why: expect.stringContaining("its trust policy has to allow the service's role with the external ID"),
    });
    const homeless = await trusting({ bucket: "nobodys" });
    expect(valueOf(await operations.test(homeless.id))).toEqual({
      stage: "put_object",
      why: "There is no such bucket",
    });
    const trusted = await trusting();
    cloud.break(403);
    expect(valueOf(await operations.test(trusted.id))).toMatchObject({
      stage: "put_object",
      why: expect.stringMatching(/^The bucket refused the object/),
    });
    cloud.break(undefined);
  });

  test("a role that asks for no external id is reported, and nothing is put as it", async () => {
    const { make, operations } = open();
    const { id } = await make();
    cloud.roles.set(roleArn, {});
    expect(valueOf(await operations.test(id))).toMatchObject({
      stage: "assume_role",
      why: expect.stringMatching(/^The role can be assumed without the external ID/),
    });
    expect(cloud.puts).toEqual([]);
  });

  test("a destination that was made again is not let in with the old external id", async () => {
    const { trusting, make, operations } = open();
    const old = await trusting();
    await operations.remove(old.id, newRequestId());
    const { id } = await make();
    expect(valueOf(await operations.test(id))).toMatchObject({ stage: "assume_role" });
  });
});
