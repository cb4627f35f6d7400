import { afterEach, beforeEach, expect, test } from "vitest";
import type { BrowserId } from "../../src/base/ids.js";
import type { SessionCreate } from "../../src/spec/bodies.js";
import type { Session } from "../../src/pool/session.js";
import { until } from "../support/browser/chromium-until.js";
import { callerOf, type ControlBed, openControlBed } from "../support/daemon/control-bed.js";
import { aProfile } from "../support/node/registered.js";
import { beatOfNode, createSession, reportGone } from "../support/daemon/control-pools.js";

let control: ControlBed;
let count = 0;
beforeEach(async () => {
  control = await openControlBed(`profile-saves${(count += 1)}`);
  await aProfile(control.bed, "login");
  await beatOfNode(control);
});
afterEach(() => control.close());

const session = (body: SessionCreate): Promise<Session> => createSession(control, body);
const recordOf = async (id: BrowserId) => (await control.bed.poolStore.findBrowser(id))?.browser;

const saving = { profile: { name: "login", save_changes: true } };
/** Time for many looks, and for more answers of Redis than any that is not waited for would take. */
async function passes(id: BrowserId): Promise<void> {
  for (let looks = 0; looks < 20; looks += 1) {
    await recordOf(id);
    await control.clock.advance(50);
  }
}
/** Whether it has settled by now. */
const isSettled = async (work: Promise<unknown>): Promise<boolean> =>
  (await Promise.race([work.then(() => true), new Promise((resolve) => setImmediate(resolve))])) === true;

test("the DELETE of a session that saves answers when its browser is gone, and at the latest after the limit", async () => {
  for (const end of ["gone", "limit"] as const) {
    const { browser } = await session(saving);
    const deleted = control.remove(browser.id, callerOf());
    await until("the end", async () => (await recordOf(browser.id))?.state === "retiring");
    await passes(browser.id);
    expect(await isSettled(deleted)).toBe(false);
    if (end === "gone") await reportGone(control, browser.id);
    await until("the answer", async () => {
      await control.clock.advance(end === "gone" ? 50 : 10_000);
      return await isSettled(deleted);
    });
    expect(await deleted).toMatchObject({ kind: "done" });
    expect((await recordOf(browser.id))?.state).toBe(end === "gone" ? undefined : "retiring");
  }
});

test.each([
  ["without a profile", {}],
  ["that does not save", { profile: { name: "login" } }],
])("the DELETE of a session %s waits for nothing", async (_, body) => {
  const { browser } = await session(body);
  expect(await control.remove(browser.id, callerOf())).toMatchObject({ kind: "done" });
  expect((await recordOf(browser.id))?.state).toBe("retiring");
});

test("a caller who goes while its session saves loses nothing; the client's own retry waits for the same save", async () => {
  const { browser } = await session(saving);
  const caller = new AbortController();
  const first = control.remove(browser.id, callerOf({ gone: caller.signal }));
  await until("the end", async () => (await recordOf(browser.id))?.state === "retiring");
  caller.abort();
  expect(await first).toMatchObject({ kind: "done" });
  expect(await recordOf(browser.id)).toMatchObject({ state: "retiring", saving: true });
  const again = control.remove(browser.id, callerOf({ retryCount: 1 }));
  await passes(browser.id);
  expect(await isSettled(again)).toBe(false);
  await reportGone(control, browser.id);
  await until("the answer", async () => {
    await control.clock.advance(50);
    return await isSettled(again);
  });
  expect(await again).toMatchObject({ kind: "done" });
});
