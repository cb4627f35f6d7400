import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { BoundedLook } from "../../../src/browser/resources/bounded-look.js";
import { newScratchDirectory } from "../../support/killed-runs.js";

const kibibyte = 1024;

let directory: string;
beforeEach(() => (directory = newScratchDirectory()));
afterEach(() => rmSync(directory, { recursive: true }));

/** The lines that a look of so many calls gives of this text, and whether it is over then. */
async function linesOf(text: string, calls = 40_000): Promise<{ lines: string[]; isOver: boolean }> {
  const path = join(directory, "text");
  writeFileSync(path, text);
  const look = new BoundedLook(calls);
  const lines: string[] = [];
  for await (const line of look.lines(path)) lines.push(line);
  return { lines, isOver: look.isOver };
}

test("lines are whole wherever a part of the text ends, the last one too", async () => {
  const lines = Array.from({ length: 5000 }, (_, at) => `${at} ${"x".repeat(at % 97)}`);
  for (const end of ["", "\n"]) {
    expect(await linesOf(lines.join("\n") + end)).toEqual({ lines, isOver: false });
  }
});

test("a text of 4 MiB is given in more than ten turns of the event loop", async () => {
  const path = join(directory, "text");
  writeFileSync(path, `${"x".repeat(99)}\n`.repeat(42_000));
  let [isDone, turns] = [false, 0];
  const count = (): void => void (isDone || ((turns += 1), setImmediate(count)));
  let given = 0;
  for await (const _ of new BoundedLook(40_000).lines(path)) if ((given += 1) === 1) setImmediate(count);
  isDone = true;
  expect(given).toBe(42_000);
  expect(turns).toBeGreaterThan(10);
});

test("a line longer than 64 KiB ends the look, and so does more text than it may go through", async () => {
  const long = "x".repeat(200 * kibibyte);
  expect(await linesOf(`first\n${long}\nlast\n`)).toEqual({ lines: ["first"], isOver: true });
  expect(await linesOf(`${"x".repeat(60 * kibibyte)}\nlast\n`)).toMatchObject({ isOver: false });
  expect(await linesOf("line\n".repeat(100 * kibibyte), 100)).toMatchObject({ isOver: true });
});
