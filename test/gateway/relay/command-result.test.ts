import { writeFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { resultOfError } from "../../../src/gateway/relay/command-result.js";

test("a node whose disk is full says that it cannot now, and names no path", async () => {
  const full = await writeFile("/dev/full", "x").then(
    () => new Error("it was not full"),
    (error: unknown) => error,
  );
  const { code, text } = resultOfError(full);
  expect(code).toBe("unavailable");
  expect(text).toContain("The browser's node has run out of disk space");
  expect(text).not.toContain("/");
});
