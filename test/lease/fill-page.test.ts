import { afterEach, beforeEach, expect, test } from "vitest";
import { Seal } from "../../src/base/crypto/seal.js";
import { Secret } from "../../src/base/crypto/secret.js";
import { newLeaseId } from "../../src/base/ids.js";
import { type FillPage, makeChangePasskey, makeFillPage } from "../../src/lease/fill-page.js";
import type { NodeReply, NodeRequest } from "../../src/pool/ports/messages.js";
import { fillOwner } from "../../src/spec/page-fill.js";
import { type ControlBed, openControlBed } from "../support/daemon/control-bed.js";
import { type Held, PoolBed } from "../support/store/pool-bed.js";

const seal = new Seal(new Secret("a secret of this suite"));
let control: ControlBed;
let count = 0;
beforeEach(async () => {
  control = await openControlBed(`fill-page${(count += 1)}`);
});
afterEach(() => control.close());

const asked: { what: NodeRequest; limitMs: number | undefined }[] = [];
const answering = (reply: NodeReply): FillPage =>
  makeFillPage({
    poolStore: control.bed.poolStore,
    seal,
    async askNode(_browser, what, limitMs) {
      asked.push({ what, limitMs });
      return reply;
    },
  });

async function question(): Promise<Parameters<FillPage>[0] & { lent: Held; pool: PoolBed }> {
  const pool = await PoolBed.filled(control.bed, { size: 1 });
  const lent = await pool.lend();
  return { browser: lent.id, lease: lent.lease, order: "an order", fields: 2, timeoutMs: 1000, lent, pool };
}

test("the node is sent the order sealed for its lease, and what it answers is the outcome", async () => {
  const outcome = { kind: "refused", why: "ambiguous_page" } as const;
  const given = await question();
  expect(await answering({ kind: "done", payload: JSON.stringify(outcome) })(given)).toEqual({
    kind: "done",
    value: outcome,
  });
  const { what, limitMs = 0 } = asked.at(-1) ?? {};
  expect(limitMs).toBeGreaterThan(given.timeoutMs);
  const sealed = what?.kind === "fill" ? what.sealed : "";
  expect(sealed).not.toContain("an order");
  const opened = seal.open(sealed, fillOwner(given.browser, given.lease));
  expect(opened.kind === "opened" && opened.text.reveal()).toBe("an order");
  expect(seal.open(sealed, fillOwner(given.browser, newLeaseId())).kind).toBe("damaged");
});

test("where the node does not answer, what became of each field is unknown; it is not asked again", async () => {
  const given = await question();
  const before = asked.length;
  const unknown = { status: "unknown", error_code: "timeout" };
  expect(await answering({ kind: "silent" })(given)).toEqual({
    kind: "done",
    value: {
      kind: "ended",
      status: "unknown",
      fields: [
        { index: 0, ...unknown },
        { index: 1, ...unknown },
      ],
    },
  });
  expect(asked.length).toBe(before + 1);
});

test("what the node refuses is refused with its code, and another lease's browser is not asked", async () => {
  const given = await question();
  expect(await answering({ kind: "failed", code: "stale_version" })(given)).toMatchObject({
    code: "stale_version",
  });
  const before = asked.length;
  expect(await answering({ kind: "silent" })({ ...given, lease: newLeaseId() })).toMatchObject({
    code: "browser_not_found",
  });
  expect(asked.length).toBe(before);
});

test.each(["fill", "passkey"])(
  "a browser that was asked for a %s is reset at its release, though no client has come and no answer",
  async (kind) => {
    const { pool, lent, ...given } = await question();
    const states: string[] = [];
    const ports = {
      poolStore: control.bed.poolStore,
      seal,
      async askNode(): Promise<NodeReply> {
        // The lease may be released while its node is being asked.
        expect(await pool.release(lent)).toBe("released");
        states.push(await pool.state(lent.id));
        return { kind: "silent" };
      },
    };
    await (kind === "fill" ? makeFillPage(ports)(given) : makeChangePasskey(ports)(given));
    expect(states).toEqual(["resetting"]);
  },
);
