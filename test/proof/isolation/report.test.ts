import { expect, test } from "vitest";
import { type Part, summaryOf } from "./report.js";

const tight: Part = {
  title: "root",
  isPlain: false,
  outcomes: [{ name: "read", vector: "process", verdict: "held", leaks: [] }],
  faults: [],
  notes: [],
  isGood: true,
};
const absent: Part = {
  title: "container",
  isPlain: false,
  isAbsent: true,
  outcomes: [],
  faults: ["not tried here: crun is not installed"],
  notes: [],
  isGood: false,
};
const leaked: Part = {
  ...tight,
  outcomes: [{ name: "read", vector: "process", verdict: "leaked", leaks: ["/etc/passwd"] }],
  isGood: false,
};
const lastLine = (parts: readonly Part[]): string | undefined => summaryOf(parts).split("\n").at(-1);

test("where everything was tried and held, it is tight", () => {
  expect(lastLine([tight])).toBe("tight");
});
test("what could not be tried is not proved, whatever held", () => {
  expect(lastLine([tight, absent])).toBe("NOT PROVED: container");
});
test("what leaked is named first", () => {
  expect(lastLine([leaked, absent])).toBe("NOT TIGHT: read");
});
