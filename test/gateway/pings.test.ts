import { expect, test } from "vitest";
import { Pings } from "../../src/gateway/pings.js";
import { DrivenClock } from "../support/driven-clock.js";

const pingMs = 1000;

function open() {
  const clock = new DrivenClock();
  const told = { pings: 0, ends: 0 };
  let isHeld = false;
  const webSocket = { ping: () => (told.pings += 1), terminate: () => (told.ends += 1) };
  const pings = new Pings({ clock, limits: { pingMs }, webSocket, isHeld: () => isHeld });
  return {
    pings,
    told,
    hold: (held: boolean) => (isHeld = held),
    pass: (periods: number) => clock.advance(periods * pingMs),
    clock,
  };
}

test("a client of which nothing comes is ended when the third ping is due", async () => {
  const { told, pass } = open();
  await pass(2);
  expect(told).toEqual({ pings: 2, ends: 0 });
  await pass(1);
  expect(told).toEqual({ pings: 2, ends: 1 });
});

test("a client of which anything comes lives, however few pings it answers", async () => {
  const { pings, told, pass } = open();
  for (let turn = 0; turn < 10; turn += 1) {
    await pass(2);
    pings.heard();
  }
  expect(told).toEqual({ pings: 20, ends: 0 });
});

test("a client that is held is pinged and not ended, and has a ping's time to answer once it is read again", async () => {
  const { told, pass, hold } = open();
  hold(true);
  await pass(19);
  hold(false);
  await pass(1);
  expect(told).toEqual({ pings: 20, ends: 0 });
  await pass(1);
  expect(told).toEqual({ pings: 20, ends: 1 });
});

test("a client whose hold does not end is ended after twenty pings", async () => {
  const { told, pass, hold } = open();
  hold(true);
  await pass(20);
  expect(told).toEqual({ pings: 20, ends: 0 });
  await pass(1);
  expect(told).toEqual({ pings: 20, ends: 1 });
});

test("none is sent after a stop", async () => {
  const { pings, told, pass, clock } = open();
  pings.stop();
  expect(clock.pending).toBe(0);
  await pass(5);
  expect(told).toEqual({ pings: 0, ends: 0 });
});
