import { expect } from "vitest";
import { until } from "../browser/chromium-until.js";
import type { Lease } from "../daemon/daemon.js";
import type { DaemonProcess } from "../daemon/daemon-process.js";
import type { Fleet } from "../daemon/fleet.js";
import { startWatch, type Tell } from "./fault.js";

/** A node that a test starves of something, and the control that has it launch browsers. */
export interface StarvedNode {
  readonly control: DaemonProcess;
  readonly daemon: DaemonProcess;
}

/** Answers of a launch on demand that the node has tried: it is given none while it rests after a failure. */
export async function launchOnDemand({
  control,
}: StarvedNode): Promise<Awaited<ReturnType<DaemonProcess["call"]>>> {
  return await until("a launch that was tried", async () => {
    const answer = await control.call("POST /browsers", { headless: true });
    return answer.status === 529 ? undefined : answer;
  });
}

/**
 * Lends a browser of a node, has `starve` starve the node until it can launch, and looks that all is well
 * then.
 */
export async function proveStarved(
  fleet: Fleet,
  tell: Tell,
  starve: (node: StarvedNode) => Promise<void>,
): Promise<void> {
  const soon = { fill: { backoff_initial_ms: 50, backoff_max_ms: 200 } };
  const control = await fleet.control(soon);
  const { daemon } = await fleet.node("a", soon);
  await control.makePool({ name: "herd", size: 3 });
  const held = (await control.call("POST /browser_pools/herd/acquire", {})).body as Lease;
  await starve({ control, daemon });
  const watch = startWatch();
  await control.poolWhen("herd", (pool) => pool.available_count === 2);
  expect(await control.call("POST /browsers", { headless: true })).toMatchObject({ status: 200 });
  expect((await control.call(`GET /browsers/${held.session_id}`)).body).toMatchObject({
    lease_id: held.lease_id,
  });
  expect(daemon.log).not.toContain("daemon failed");
  tell({
    saw: "500 launch_failed from POST /browsers, where no other node is there",
    recoveryMs: watch.since(),
  });
}
