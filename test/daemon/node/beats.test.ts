import { expect, test } from "vitest";
import { Beats } from "../../../src/daemon/node/beats.js";
import { DrivenClock } from "../../support/driven-clock.js";

/** Beats each second that Redis leaves unanswered until told otherwise. */
function unanswered() {
  const clock = new DrivenClock();
  let [sent, answer] = [0, (): void => {}];
  const silence = new Promise<void>((resolve) => (answer = resolve));
  const beats = new Beats(clock, async () => {
    sent += 1;
    await silence;
  });
  beats.start(1000);
  return { clock, beats, sent: () => sent, answer: () => answer() };
}

test("beats that Redis leaves unanswered for a minute are one, and one more when it answers", async () => {
  const { clock, sent, answer } = unanswered();
  await clock.advance(60_000);
  expect(sent()).toBe(1);
  answer();
  await clock.advance(0);
  expect(sent()).toBe(2);
  await clock.advance(3000);
  expect(sent()).toBe(5);
});

test("a beat out of turn is sent at once where none is under way, and nothing is after the end", async () => {
  const { clock, beats, sent, answer } = unanswered();
  answer();
  beats.soon();
  await clock.advance(0);
  expect(sent()).toBe(1);
  await beats.close();
  beats.soon();
  await clock.advance(5000);
  expect(sent()).toBe(1);
});

test("the end waits for a beat that was sent, and begins none that was to follow", async () => {
  const { clock, beats, sent, answer } = unanswered();
  await clock.advance(3000);
  let isOver = false;
  const over = beats.close().then(() => (isOver = true));
  await clock.advance(0);
  expect([isOver, sent()]).toEqual([false, 1]);
  answer();
  await over;
  expect(sent()).toBe(1);
});
