import { afterEach, expect, test } from "vitest";
import { type Daemon, type Lease, startDaemon } from "../../support/daemon/daemon.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";

let daemon: Daemon;
afterEach(() => daemon.stop());

/** Longer than any test: whatever is launched in it was not launched by a tick. */
const never = 600_000;

const acquire = async (): Promise<Lease> => {
  const { status, body } = await daemon.call("POST /browser_pools/replaced/acquire", {
    acquire_timeout_seconds: 50,
  });
  expect(status).toBe(200);
  return body as Lease;
};
/** Only what a client was on has to be reset. */
const connectAndLeave = async ({ cdp_ws_url }: Lease): Promise<void> => {
  const client = await connectRaw(cdp_ws_url);
  await client.close();
};
const release = async ({ session_id, lease_id }: Lease, body: object = {}): Promise<void> => {
  expect(
    (await daemon.call("POST /browser_pools/replaced/release", { session_id, lease_id, ...body })).status,
  ).toBe(204);
};

test.each([
  ["at once where there is room", {}],
  ["as soon as its room is free where there is no other", { max_browsers: 1 }],
])("a browser that is over is replaced %s, without a tick", async (_, node) => {
  daemon = await startDaemon({
    file: { periods: { fill_ms: never, reap_ms: never, recycle_ms: never }, node },
  });
  await daemon.makePool({ name: "replaced", engine: "headless-shell", reset_on_release: "relaunch" });
  const first = await acquire();
  await release(first);
  const second = await acquire();
  expect(second.session_id).not.toBe(first.session_id);
  await release(second, { reuse: false });
  const third = await acquire();
  expect(third.session_id).not.toBe(second.session_id);
  await release(third);
});

test("a browser launched for one holder is replaced where its pool comes to reset, and the one after it is kept", async () => {
  daemon = await startDaemon();
  await daemon.makePool({ name: "replaced", engine: "headless-shell", reset_on_release: "relaunch" });
  const { status } = await daemon.call("PATCH /browser_pools/replaced", { reset_on_release: "state" });
  expect(status).toBe(200);
  const first = await acquire();
  await connectAndLeave(first);
  await release(first);
  const second = await acquire();
  expect(second.session_id).not.toBe(first.session_id);
  await connectAndLeave(second);
  await release(second);
  expect((await acquire()).session_id).toBe(second.session_id);
});
