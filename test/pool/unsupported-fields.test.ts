import { expect, test } from "vitest";
import type { SessionCreate } from "../../src/spec/bodies.js";
import { unsupportedOfCreate } from "../../src/spec/unsupported-fields.js";

test.each([
  [{ proxy: { mode: "default" } }, []],
  [{ proxy: { id: "p" } }, []],
  [{ vaults: [] }, []],
  [{ vaults: [{ id: "v" }] }, []],
  [{ invocation_id: "i" }, ["invocation_id"]],
] as [SessionCreate, string[]][])("%j asks for what is not built: %j", (body, fields) =>
  expect(unsupportedOfCreate(body)).toEqual(fields),
);
