import { expect, test } from "vitest";
import { tableOf } from "../faults/report/table.js";

test("the table has a row for each fault, with what callers saw and how long it took to recover", () => {
  const table = tableOf([
    { name: "Redis is stopped", outcome: "held", row: { saw: "503 store_unavailable", recoveryMs: 1234 } },
    { name: "a node dies", outcome: "FAILED" },
    { name: "a pause", outcome: "held", row: { saw: "nothing", recoveryMs: 12.3 } },
  ]);
  expect(table.split("\n")).toEqual([
    "fault                     what callers saw       recovery",
    "Redis is stopped  held    503 store_unavailable  1.2 s",
    "a node dies       FAILED",
    "a pause           held    nothing                12 ms",
  ]);
});
