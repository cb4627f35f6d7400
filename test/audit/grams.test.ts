import { expect, test } from "vitest";
import { GramsBuilder, mayHold } from "../../src/audit/grams.js";

const idOf = (index: number): string =>
  (BigInt(index + 1) * 0x9e3779b97f4a7c15n * 0xc2b2ae3d27d4eb4fn).toString(36).padStart(24, "0").slice(-24);

test("whatever part of a text is asked for may be held, and a short one always", () => {
  const builder = new GramsBuilder();
  builder.add("/browsers/abc/extensions");
  builder.add("someone@example.com");
  const grams = builder.build();
  for (const text of ["/browsers/abc/extensions", "abc", "abc/", "one@exa", "wsers", "zz", ""])
    expect(mayHold(grams, text)).toBe(true);
  for (const text of ["nobody@example.com", "404", "10.0.0.1", "browsersx"])
    expect(mayHold(grams, text)).toBe(false);
  expect(grams.length).toBe(1024);
});

test("among tens of thousands of ids, one that is not there is told apart", () => {
  const builder = new GramsBuilder();
  for (let index = 0; index < 30_000; index += 1) builder.add(`/browsers/${idOf(index)}`);
  const grams = builder.build();
  expect(grams.length).toBe(2 ** 17);
  expect(Array.from({ length: 100 }, (_, index) => mayHold(grams, idOf(index * 7)))).not.toContain(false);
  const strangers = Array.from({ length: 100 }, (_, index) => mayHold(grams, idOf(1_000_000 + index)));
  expect(strangers.filter(Boolean).length).toBeLessThan(5);
});
