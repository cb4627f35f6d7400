import { afterEach, beforeEach, expect, test } from "vitest";
import type { SessionPatch } from "../../src/spec/bodies.js";
import type { PoolSpec } from "../../src/spec/launch-template.js";
import type { Session } from "../../src/pool/session.js";
import { callerOf, type ControlBed, openControlBed } from "../support/daemon/control-bed.js";
import { type Held, PoolBed } from "../support/store/pool-bed.js";
import { filledPool, lendFrom, patchSession } from "../support/daemon/control-pools.js";
import type { AcquireBody } from "../../src/spec/bodies.js";

let control: ControlBed;
let count = 0;
beforeEach(async () => {
  control = await openControlBed(`session-network${(count += 1)}`);
});
afterEach(() => control.close());

const filled = (size = 1, over: Partial<PoolSpec> = {}): Promise<PoolBed> =>
  filledPool(control, { size, name: "herd", ...over });
const lend = (pool: PoolBed, body: AcquireBody = {}): Promise<Held> => lendFrom(control, pool, body);

const patched = (ref: string, patch: SessionPatch): Promise<Session> => patchSession(control, ref, patch);

test("a network that comes with a viewport is made ready with it, and asked for once all the rest is noted", async () => {
  const pool = await filled();
  const { id, lease } = await lend(pool);
  const noted: unknown[] = [];
  control.whileNodeWorks(async () => {
    const { lease: held } = await pool.record(id);
    noted.push([held?.name, held?.networkWanted?.revision]);
    if (held?.networkWanted)
      await control.bed.reports.applied({
        browser: id,
        lease,
        revision: held.networkWanted.revision,
        outcome: "applied",
      });
  });
  const patch = {
    name: "all",
    viewport: { width: 640, height: 480 },
    network: { allowed_hosts: ["a.example"] },
  };
  expect((await patched(id, patch)).browser.lease).toMatchObject({
    name: "all",
    viewport: expect.stringContaining("640"),
    network: { revision: expect.any(Number) },
  });
  expect(control.asked).toMatchObject([
    { kind: "change", viewport: { width: 640, height: 480 }, network: { allowedHosts: '["a.example"]' } },
    { kind: "network", revision: noted.flat()[3] },
  ]);
  expect(noted).toEqual([
    [undefined, undefined],
    ["all", expect.any(Number)],
  ]);
  expect((await pool.record(id)).lease).toMatchObject({ network: { allowedHosts: '["a.example"]' } });
});

test("a network is asked of the node after the record says so, before anything else is written, and shown once it is in force", async () => {
  const pool = await filled();
  const { id, lease } = await lend(pool);
  control.answerOfNode("silent");
  const silent = await control.updateSession(
    id,
    { name: "other", network: { allowed_hosts: [" A.example ", "a.example"] } },
    callerOf(),
  );
  expect(silent).toMatchObject({
    kind: "refused",
    code: "node_silent",
    message: expect.stringContaining("not in force yet"),
  });
  const { lease: asked } = await pool.record(id);
  expect(asked).toMatchObject({ networkWanted: { allowedHosts: '["a.example"]' } });
  const revision = asked?.networkWanted?.revision ?? 0;
  expect(control.asked).toMatchObject([{ kind: "network", revision, change: { revision } }]);
  expect([asked?.name, asked?.network]).toEqual([undefined, undefined]);
  await control.bed.reports.applied({ browser: id, lease, revision, outcome: "applied" });
  control.answerOfNode("done");
  expect((await patched(id, { name: "other" })).browser.lease).toMatchObject({
    name: "other",
    network: { revision, allowedHosts: '["a.example"]' },
  });
});

test.each(["applied", "touch"])(
  "a network that is in force is told as such where Redis goes away then (%s), and the repeat is harmless",
  async (call) => {
    const pool = await filled();
    const { id } = await lend(pool);
    control.whileNodeWorks(async () => void control.broken.add(call));
    const patch = { name: `late-${call.toLowerCase()}`, network: { allowed_hosts: ["a.example"] } };
    expect(await control.updateSession(id, patch, callerOf())).toMatchObject({
      kind: "refused",
      code: "store_unavailable",
      details: [{ code: "network_in_force" }],
      message: expect.stringContaining("in force"),
    });
    control.whileNodeWorks(async () => {});
    control.broken.clear();
    expect((await patched(id, patch)).browser.lease).toMatchObject({
      name: patch.name,
      network: { allowedHosts: '["a.example"]' },
    });
  },
);

test("a network that is in force is told as such where its node says nothing of the telemetry after it", async () => {
  const pool = await filled();
  const { id } = await lend(pool);
  control.whileNodeWorks(async () => {
    if (control.asked.length === 2) control.answerOfNode("silent");
  });
  const patch = { network: { allowed_hosts: ["a.example"] }, telemetry: { enabled: true } };
  expect(await control.updateSession(id, patch, callerOf())).toMatchObject({
    code: "node_silent",
    details: [{ code: "network_in_force" }],
  });
});

test("an allowlist does not come beside a policy of WebRTC's own addresses", async () => {
  const { id } = await lend(await filled(1, { browser_policy: { WebRtcUdpPortRange: "1-2" } }));
  const refused = await control.updateSession(id, { network: { allowed_hosts: ["a.example"] } }, callerOf());
  expect(refused).toMatchObject({
    code: "bad_request",
    details: [
      { message: "browser_policy.WebRtcUdpPortRange: cannot be combined with network.allowed_hosts" },
    ],
  });
  expect(control.asked).toEqual([]);
  expect(await control.updateSession(id, { network: { allowed_hosts: null } }, callerOf())).toMatchObject({
    kind: "done",
  });
});

test("a network its node cannot put in force is a conflict", async () => {
  const { id } = await lend(await filled());
  control.answerOfNode("failed");
  expect(await control.updateSession(id, { network: { allowed_hosts: null } }, callerOf())).toMatchObject({
    kind: "refused",
    code: "conflict",
  });
  expect(await control.updateSession(id, { proxy: { id: "none" } }, callerOf())).toMatchObject({
    kind: "refused",
    code: "bad_request",
  });
});

test("a start page has to be within the list that will be in force", async () => {
  const pool = await filled(1, { network: { allowed_hosts: ["a.example"] } });
  expect(await control.acquire(pool.id, { start_url: "https://b.example/" }, callerOf())).toMatchObject({
    kind: "refused",
    code: "bad_request",
  });
  const { id, lease } = await lend(pool);
  const refused = {
    kind: "refused",
    code: "bad_request",
    details: [{ message: expect.stringContaining("start_url") }],
  };
  expect(await control.updateSession(id, { start_url: "https://b.example/" }, callerOf())).toMatchObject(
    refused,
  );
  expect(
    await control.updateSession(
      id,
      { start_url: "https://a.example/", network: { allowed_hosts: ["b.example"] } },
      callerOf(),
    ),
  ).toMatchObject(refused);
  expect(control.asked).toEqual([]);
  await patched(id, { start_url: "https://b.example/", network: { allowed_hosts: ["b.example"] } });
  const revision = (await pool.record(id)).lease?.networkWanted?.revision ?? 0;
  await control.bed.reports.applied({ browser: id, lease, revision, outcome: "applied" });
  await patched(id, { start_url: "https://b.example/again" });
  expect(await control.updateSession(id, { start_url: "https://a.example/" }, callerOf())).toMatchObject(
    refused,
  );
});
