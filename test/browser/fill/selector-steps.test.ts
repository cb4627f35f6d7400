import { expect, test } from "vitest";
import { planOf } from "../../../src/browser/fill/selector-steps.js";

const stepsOf = (selector: string): readonly string[] =>
  planOf(selector).across.map((steps) =>
    steps.map(({ text, isChild }) => (isChild ? `> ${text}` : text)).join(" | "),
  );

test.each([
  ["#user", []],
  ["  x-login   input ", ["x-login | input"]],
  ["x-login>input", ["x-login | > input"]],
  ["main x-login > form input[name='a > b, c']", ["main | x-login | > form | input[name='a > b, c']"]],
  ["label + input", []],
  ["x-login label ~ input", ["x-login | label ~ input"]],
  ["#a, x-b c", ["x-b | c"]],
  ["x-a b, x-c > d", ["x-a | b", "x-c | > d"]],
  ["x-a :is(b c, d > e)", ["x-a | :is(b c, d > e)"]],
  ['x-a [title="]  b"]', ['x-a | [title="]  b"]']],
  ["#\\31 23 input", ["#\\31 23 | input"]],
  ["a\\ b input", ["a\\ b | input"]],
])("%s has the steps %j", (selector, steps) => {
  expect(stepsOf(selector)).toEqual(steps);
});

test("a selector is not changed as a whole", () => {
  expect(planOf(" a,b > c ").text).toBe(" a,b > c ");
});
