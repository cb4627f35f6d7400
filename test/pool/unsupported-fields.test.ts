import { describe, expect, test } from "vitest";
import type { PoolCreate, SessionCreate, SessionPatch } from "../../src/spec/bodies.js";
import {
  unsupportedFields,
  unsupportedOfCreate,
  unsupportedOfPatch,
} from "../../src/spec/unsupported-fields.js";
import { made } from "../support/pool/specs.js";

describe("sessions", () => {
  test.each([
    [{ proxy: { mode: "default" } }, []],
    [{ proxy: { id: "p" } }, []],
    [{ vaults: [] }, []],
    [{ vaults: [{ id: "v" }] }, ["vaults"]],
    [{ invocation_id: "i" }, ["invocation_id"]],
  ] as [SessionCreate, string[]][])("%j asks for what is not built: %j", (body, fields) =>
    expect(unsupportedOfCreate(body)).toEqual(fields),
  );

  test.each([
    [{}, []],
    [{ network: { allowed_hosts: null } }, []],
    [{ network: { allowed_hosts: ["a"] } }, []],
    [{ profile: { name: "p" } }, []],
    [{ proxy: { mode: "direct" } }, []],
    [{ proxy: { name: "p" } }, []],
    [{ proxy_id: "" }, []],
    [{ proxy_id: "p" }, []],
    [{ telemetry: { enabled: true } }, ["telemetry"]],
  ] as [SessionPatch, string[]][])("a PATCH of %j asks for what is not built: %j", (body, fields) =>
    expect(unsupportedOfPatch(body)).toEqual(fields),
  );
});

test.each([
  [{}, []],
  [{ browser_policy: { HomepageLocation: "x" } }, []],
  [{ extensions: [{ id: "e" }] }, []],
  [{ network: { private_hosts: [] } }, []],
  [{ network: { allowed_hosts: ["a"] } }, []],
  [{ network: { proxy_routes: [{ hosts: ["a"], proxy: { id: "p" } }] } }, []],
  [{ profile: { id: "p" } }, []],
  [{ proxy_id: "p" }, []],
  [{ telemetry: { enabled: true } }, ["telemetry"]],
] as [Partial<PoolCreate>, string[]][])("a pool with %j is not filled for %j", (body, fields) =>
  expect(unsupportedFields(made(body))).toEqual(fields),
);
