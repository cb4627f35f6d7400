import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { afterEach, beforeEach, expect } from "vitest";
import { until } from "../support/browser/chromium-until.js";
import { type DaemonProcess } from "../support/daemon/daemon-process.js";
import { Fleet } from "../support/daemon/fleet.js";
import { fault } from "../support/faults/fault.js";
import { openFirstUses } from "../support/faults/first-uses.js";
import { launchOnDemand, proveStarved, type StarvedNode } from "../support/faults/starved-node.js";

let fleet: Fleet;
beforeEach(async () => {
  fleet = await Fleet.open();
});
afterEach(() => fleet.close());

const descriptorsOf = ({ pid }: DaemonProcess): number => readdirSync(`/proc/${pid}/fd`).length;
/** So many may be open from now on; those that are stay. */
const bound = ({ pid }: DaemonProcess, most: number): void =>
  void execFileSync("prlimit", ["--pid", String(pid), `--nofile=${most}:`]);

/** True where a launch fails for want of descriptors when so many are left. */
async function isShort(node: StarvedNode, spare: number): Promise<boolean> {
  const { control, daemon } = node;
  bound(daemon, descriptorsOf(daemon) + spare);
  const { status, body } = await launchOnDemand(node);
  bound(daemon, 4096);
  if (status !== 200) expect(body).toMatchObject({ code: "launch_failed" });
  else await control.call(`DELETE /browsers/${body.session_id}`);
  return status !== 200;
}

fault(
  "a node has no descriptor left: launches fail, what is lent goes on, and the pool fills again",
  (tell) =>
    proveStarved(fleet, tell, async (node) => {
      // One more each time, so that each step of a launch is the first to have none.
      let spare = 0;
      for (; await isShort(node, spare); spare += 1);
      expect(spare).toBeGreaterThan(3);
    }),
);

function asking({ port }: DaemonProcess): Socket {
  const socket = connect(port, "127.0.0.1")
    .on("error", () => {})
    .resume();
  socket.write("GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n");
  return socket;
}

fault("more connect than there are descriptors", async (tell) => {
  const control = await fleet.control();
  const { daemon } = await fleet.node("a");
  await control.makePool({ name: "herd", size: 2 });
  for (const one of [daemon, control]) {
    bound(one, descriptorsOf(one) + 4);
    const sockets = Array.from({ length: 100 }, () => asking(one));
    await until("an answer to each, or its end", () =>
      sockets.every((socket) => socket.closed || socket.bytesRead > 0),
    );
    for (const socket of sockets) socket.destroy();
    bound(one, 4096);
  }
  const got = await control.call("POST /browser_pools/herd/acquire", { acquire_timeout_seconds: 10 });
  expect(got.status).toBe(200);
  for (const { log } of [daemon, control]) expect(log).not.toContain("daemon failed");
  tell({ saw: "their connections are closed" });
});

const heldForMs = 2000;

/**
 * Has something attempted while so few are left. They are given back after a while in any case: where the
 * attempt needs a connection of its own, that waits for a descriptor.
 */
async function attemptStarved(
  daemon: DaemonProcess,
  spare: number,
  attempt: () => Promise<unknown>,
): Promise<void> {
  const giveBack = (): void => bound(daemon, 4096);
  bound(daemon, descriptorsOf(daemon) + spare);
  const timer = setTimeout(giveBack, heldForMs);
  try {
    await attempt();
  } finally {
    clearTimeout(timer);
    giveBack();
  }
}

fault("a control has no descriptor left when it first needs what it loads late", async (tell) => {
  const { control, uses } = await openFirstUses(fleet);
  for (const { attempt } of uses) {
    // One more each time, so that each file on the way is the first that cannot be opened.
    for (let spare = 0; spare < 8; spare += 1) await attemptStarved(control, spare, attempt);
  }
  for (const { works } of uses) await works();
  expect(control.log).not.toContain("daemon failed");
  tell({ saw: "503 from what needs it, and telemetry waits; then each works" });
});
