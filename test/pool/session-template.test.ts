import { describe, expect, test } from "vitest";
import type { SessionCreate } from "../../src/spec/bodies.js";
import { createSessionTemplate } from "../../src/pool/merge-spec.js";
import { defaults, faultsOfSession, meant } from "../support/pool/specs.js";

describe("sessions", () => {
  const session = (body: SessionCreate) => {
    const template = createSessionTemplate(meant(body), defaults);
    return template.kind === "done" ? template.value : template;
  };
  test.each([true, false])("a session says whether its profile is saved: %s", (save_changes) => {
    expect(session({ profile: { name: "p", save_changes }, extensions: [{ id: "e" }] })).toMatchObject({
      profile: { name: "p", save_changes },
      profile_id: "p",
      extension_ids: ["e"],
    });
  });
  test.each([
    [{ save_changes: true }, ["profile"]],
    [{}, ["profile"]],
    [{ id: "a", name: "b" }, ["profile"]],
    [{ id: "", save_changes: true }, []],
  ])("a session with the profile %j has the faults %j", (profile, faults) => {
    expect(faultsOfSession({ profile })).toEqual(faults);
    if (faults.length === 0) expect(session({ profile })).toEqual(session({}));
  });
  test.each([
    [{ gpu: true, headless: true }, ["gpu"]],
    [{ gpu: true, memory: "8GiB" }, ["memory"]],
    [{ video_memory: "2GiB" }, ["video_memory"]],
    [{ gpu: true, video_memory: "4GiB" }, []],
    [{ proxy: { mode: "direct" }, proxy_id: "p" }, ["proxy"]],
    [{ proxy: { mode: "direct" }, proxy_id: "" }, []],
    [{ proxy: {} }, ["proxy"]],
    [{ proxy: { mode: "direct", id: "p" } }, ["proxy"]],
    [{ vaults: [{}] }, ["vaults"]],
  ] as [SessionCreate, string[]][])("%j has the faults %j", (body, faults) =>
    expect(faultsOfSession(body)).toEqual(faults),
  );
});
