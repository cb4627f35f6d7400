import { expect, test } from "vitest";
import { NgramFilterBuilder, mayHold } from "../../src/audit/ngram-filter.js";

const idOf = (index: number): string =>
  (BigInt(index + 1) * 0x9e3779b97f4a7c15n * 0xc2b2ae3d27d4eb4fn).toString(36).padStart(24, "0").slice(-24);

test("whatever part of a text is asked for may be held, and a short one always", () => {
  const builder = new NgramFilterBuilder();
  builder.add("/browsers/abc/extensions");
  builder.add("someone@example.com");
  const filter = builder.build();
  for (const text of ["/browsers/abc/extensions", "abc", "abc/", "one@exa", "wsers", "zz", ""])
    expect(mayHold(filter, text)).toBe(true);
  for (const text of ["nobody@example.com", "404", "10.0.0.1", "browsersx"])
    expect(mayHold(filter, text)).toBe(false);
  expect(filter.length).toBe(1024);
});

test("among tens of thousands of ids, one that is not there is told apart", () => {
  const builder = new NgramFilterBuilder();
  for (let index = 0; index < 30_000; index += 1) builder.add(`/browsers/${idOf(index)}`);
  const filter = builder.build();
  expect(filter.length).toBe(2 ** 17);
  expect(Array.from({ length: 100 }, (_, index) => mayHold(filter, idOf(index * 7)))).not.toContain(false);
  const strangers = Array.from({ length: 100 }, (_, index) => mayHold(filter, idOf(1_000_000 + index)));
  expect(strangers.filter(Boolean).length).toBeLessThan(5);
});
