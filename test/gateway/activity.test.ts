import { expect, test } from "vitest";
import type { Clock } from "../../src/base/clock.js";
import { newLeaseId } from "../../src/base/ids.js";
import { Activity } from "../../src/gateway/activity.js";

function drivenClock(): Clock & { at: number } {
  return {
    at: 100,
    now() {
      return this.at;
    },
    monotonic() {
      return this.at;
    },
    after: () => () => {},
    every: () => () => {},
  };
}

const visitor = (cut: (reason: string) => Promise<void> = async () => {}) => ({ cut });

test("the clock of a lease starts when it begins and again when its last visitor has gone", () => {
  const clock = drivenClock();
  const activity = new Activity(clock);
  const lease = newLeaseId();
  clock.at = 200;
  activity.begin(lease);
  expect(activity.inactiveSinceMs).toBe(200);
  const visits = [activity.enter(lease, visitor()), activity.enter(lease, visitor())];
  for (const visit of visits) expect(visit?.confirm()).toBe(true);
  expect([activity.inactiveSinceMs, activity.registrations]).toEqual([undefined, 2]);
  clock.at = 300;
  visits[0]?.end();
  expect(activity.inactiveSinceMs).toBeUndefined();
  clock.at = 400;
  visits[1]?.end();
  visits[1]?.end();
  expect([activity.inactiveSinceMs, activity.registrations]).toEqual([400, 2]);
});

test("an upgrade that was never registered is no activity", () => {
  const clock = drivenClock();
  const activity = new Activity(clock);
  activity.begin(newLeaseId());
  const visit = activity.enter(newLeaseId(), visitor());
  clock.at = 500;
  visit?.end();
  expect([activity.inactiveSinceMs, activity.registrations]).toEqual([100, 0]);
});

test("a registered visitor of a lease that the node does not know yet begins it", () => {
  const activity = new Activity(drivenClock());
  const [first, second] = [newLeaseId(), newLeaseId()];
  activity.begin(first);
  activity.enter(second, visitor())?.confirm();
  expect([activity.lease, activity.registrations]).toEqual([second, 1]);
});

test("the fence cuts every visitor of the lease, pending ones too, and waits until they are cut", async () => {
  const activity = new Activity(drivenClock());
  const [old, next] = [newLeaseId(), newLeaseId()];
  const cut: string[] = [];
  let finish = (): void => {};
  const slow = new Promise<void>((resolve) => (finish = resolve));
  activity
    .enter(
      old,
      visitor(async (reason) => (cut.push(reason), slow)),
    )
    ?.confirm();
  const pending = activity.enter(
    old,
    visitor(async () => void cut.push("pending")),
  );
  activity.enter(
    next,
    visitor(async () => void cut.push("other")),
  );
  let isDone = false;
  const fence = activity.cutLease(old, "released").then(() => (isDone = true));
  expect(cut).toEqual(["released", "pending"]);
  expect(pending?.confirm()).toBe(false);
  expect(activity.enter(old, visitor())).toBeUndefined();
  await Promise.resolve();
  expect(isDone).toBe(false);
  finish();
  await fence;
  activity.begin(old);
  expect(activity.lease).toBeUndefined();
});

test("a fence that could not cut a visitor reports it", async () => {
  const activity = new Activity(drivenClock());
  const lease = newLeaseId();
  activity
    .enter(
      lease,
      visitor(() => Promise.reject(new Error("still attached"))),
    )
    ?.confirm();
  await expect(activity.cutLease(lease, "released")).rejects.toThrow("1 of 1 could not be cut");
  expect(activity.inactiveSinceMs).toBeDefined();
});

test("whoever is not connected, as a request or an upgrade under way, answers nothing that a page asks", () => {
  const activity = new Activity(drivenClock());
  const lease = newLeaseId();
  const client = { ...visitor(), isConnected: false };
  for (const entering of [visitor(), client]) activity.enter(lease, entering)?.confirm();
  expect([activity.hasVisitors, activity.hasClients]).toEqual([true, false]);
  client.isConnected = true;
  expect(activity.hasClients).toBe(true);
  client.isConnected = false;
  expect(activity.hasClients).toBe(false);
});

test("one that only stays in the browser is cut and interrupted, and is neither activity nor a client", async () => {
  const activity = new Activity(drivenClock());
  const [lease, heard] = [newLeaseId(), [] as string[]];
  const told = async (why: string) => void heard.push(why);
  activity.enter(lease, { cut: told, interrupt: told, isPassive: true });
  expect(activity.hasVisitors).toBe(false);
  const client = activity.enter(lease, visitor());
  expect(activity.hasVisitors).toBe(true);
  client?.end();
  expect(activity.hasVisitors).toBe(false);
  await activity.interrupt("restarting");
  await activity.cutLease(lease, "released");
  expect(heard).toEqual(["restarting", "released"]);
});
