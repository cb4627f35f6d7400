import { afterEach, beforeEach, expect, test } from "vitest";
import { partitionOf, newExtensionId } from "../../src/base/ids.js";
import type { PoolCreate, PoolPatch } from "../../src/spec/bodies.js";
import type { Pool } from "../../src/pool/pool.js";
import { callerOf, type ControlBed, openControlBed } from "../support/daemon/control-bed.js";
import { poolSpec, writeOf } from "../support/store/store-bed.js";
import { anExtension, aProfile } from "../support/node/registered.js";

let control: ControlBed;
let count = 0;
beforeEach(async () => {
  control = await openControlBed(`made-of${(count += 1)}`);
});
afterEach(() => control.close());

function poolOf(outcome: { kind: string }): Pool {
  if (outcome.kind !== "done") throw new Error(JSON.stringify(outcome));
  return (outcome as { kind: "done"; value: Pool }).value;
}
const create = async (over: Partial<PoolCreate>): Promise<Pool> =>
  poolOf(await control.createPool({ size: 2, headless: true, ...over }, callerOf()));
const patched = async (pool: Pool, patch: PoolPatch): Promise<Pool> =>
  poolOf(await control.updatePool(pool.id, patch, callerOf()));

test("a pool names extensions and a profile by their ids, in load order, and echoes how they were called", async () => {
  const [one, two, login] = [
    await anExtension(control.bed, "one"),
    await anExtension(control.bed),
    await aProfile(control.bed, "login"),
  ];
  const { spec } = await create({
    extensions: [{ id: two }, { name: "one" }],
    profile: { name: "login", save_changes: true },
  });
  expect(spec).toMatchObject({
    extensions: [{ id: two }, { name: "one" }],
    extension_ids: [two, one],
    profile: { name: "login" },
    profile_id: login,
    refresh_on_profile_update: true,
  });
  expect(spec.profile).not.toHaveProperty("save_changes");
});

test.each([
  [
    "an extension that is not there",
    { extensions: [{ name: "nobody" }] },
    'extensions[0]: there is no extension named "nobody"',
  ],
  [
    "a profile that is not there",
    { profile: { id: "0".repeat(24) } },
    `profile: there is no profile with the id "${"0".repeat(24)}"`,
  ],
  ["an empty profile", { profile: {} }, "profile: must have exactly one of id and name"],
  ["a nameless extension", { extensions: [{}] }, "extensions: must have exactly one of id and name"],
  [
    "the same extension twice",
    { extensions: [{ name: "one" }, { name: "one" }] },
    "extensions[1]: is the same extension as extensions[0]",
  ],
] as const)(
  "%s is refused at creation, at a change and for a session, and changes nothing",
  async (_, made, message) => {
    await anExtension(control.bed, "one");
    const body = structuredClone(made) as PoolPatch;
    const refused = { kind: "refused", code: "bad_request", details: [{ code: "invalid_input", message }] };
    expect(await control.createPool({ size: 2, ...body }, callerOf())).toMatchObject(refused);
    expect(
      await control.createSession({ ...body } as Parameters<typeof control.createSession>[0], callerOf()),
    ).toMatchObject(refused);
    const pool = await create({ name: "herd" });
    expect(await control.updatePool("herd", { ...body, size: 5 }, callerOf())).toMatchObject(refused);
    expect(poolOf(await control.getPool("herd"))).toEqual(pool);
  },
);

test("the same references called otherwise are no new launch; others are, and so is another order", async () => {
  const [one, two] = [await anExtension(control.bed, "one"), await anExtension(control.bed, "two")];
  const login = await aProfile(control.bed, "login");
  const first = await create({ extensions: [{ name: "one" }, { name: "two" }], profile: { name: "login" } });
  const same = await patched(first, { extensions: [{ id: one }, { id: two }], profile: { id: login } });
  expect(same.spec).toMatchObject({ extensions: [{ id: one }, { id: two }], profile: { id: login } });
  expect(same.generation).toBe(first.generation);
  const turned = await patched(first, { extensions: [{ id: two }, { id: one }] });
  expect(turned.generation).toBe(first.generation + 1);
  const bare = await patched(first, { extensions: [], profile: { name: "" } });
  expect(bare.generation).toBe(first.generation + 2);
  for (const field of ["extensions", "extension_ids", "profile", "profile_id"])
    expect(bare.spec).not.toHaveProperty(field);
  expect(bare.spec.refresh_on_profile_update).toBe(false);
});

test("a name that means another thing by now is a new launch when it is sent again", async () => {
  const login = await aProfile(control.bed, "login");
  const pool = await create({ profile: { name: "login" }, refresh_on_profile_update: false });
  await control.bed.profiles.rename(login, "old");
  const other = await aProfile(control.bed, "login");
  expect((await patched(pool, { size: 3 })).spec.profile_id).toBe(login);
  const again = await patched(pool, { profile: { name: "login" } });
  expect([again.spec.profile_id, again.spec.refresh_on_profile_update, again.generation]).toEqual([
    other,
    true,
    pool.generation + 1,
  ]);
});

test("twenty extensions may be named; the browser is launched from their ids", async () => {
  const ids = await Promise.all(Array.from({ length: 20 }, () => anExtension(control.bed)));
  const pool = await create({ extensions: ids.map((id) => ({ id })) });
  const launch = await control.bed.poolStore.findTemplate(partitionOf(pool.id), String(pool.generation));
  expect(launch).toMatchObject({ extension_ids: ids });
});

test("a pool of an earlier release, whose references were never resolved, gets their ids with its first change", async () => {
  const one = await anExtension(control.bed, "one");
  const pool = await create({ size: 1 });
  const spec = { ...poolSpec({ size: 1 }), extensions: [{ name: "one" }] };
  await control.bed.poolStore.updatePool(partitionOf(pool.id), {
    revision: pool.revision,
    write: writeOf(spec, ["extensions"]),
    isNewLaunch: true,
    isNewNetwork: false,
    discard: false,
    request: callerOf().request,
  });
  expect(poolOf(await control.getPool(pool.id)).fill).toMatchObject({ reason: "not_supported" });
  const changed = await patched(pool, { timeout_seconds: 99 });
  expect(changed.spec.extension_ids).toEqual([one]);
  expect(changed.fill?.reason).not.toBe("not_supported");
});

test("headless-shell has no extensions: it is refused where it is asked for, and not chosen otherwise", async () => {
  await anExtension(control.bed, "one");
  expect(
    await control.createPool(
      { size: 1, headless: true, engine: "headless-shell", extensions: [{ name: "one" }] },
      callerOf(),
    ),
  ).toMatchObject({
    kind: "refused",
    details: [{ message: "extensions: the engine headless-shell has none" }],
  });
  expect((await create({ extensions: [{ name: "one" }] })).spec.engine).toBe("chromium");
});

test("what is not an id of ours is looked for nowhere", async () => {
  expect(
    await control.createPool({ size: 1, extensions: [{ id: "one" }, { id: newExtensionId() }] }, callerOf()),
  ).toMatchObject({
    kind: "refused",
    details: [
      { message: expect.stringContaining("extensions[0]") },
      { message: expect.stringContaining("extensions[1]") },
    ],
  });
});
