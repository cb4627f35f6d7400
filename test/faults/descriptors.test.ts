import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { afterEach, beforeEach, expect } from "vitest";
import { until } from "../support/browser/chromium-until.js";
import type { Lease } from "../support/daemon/daemon.js";
import { type DaemonProcess } from "../support/daemon/daemon-process.js";
import { Fleet } from "../support/daemon/fleet.js";
import { fault, startWatch } from "./fault.js";

let fleet: Fleet;
beforeEach(async () => {
  fleet = await Fleet.open();
});
afterEach(() => fleet.close());

const descriptorsOf = ({ pid }: DaemonProcess): number => readdirSync(`/proc/${pid}/fd`).length;
/** So many may be open from now on; those that are stay. */
const bound = ({ pid }: DaemonProcess, most: number): void =>
  void execFileSync("prlimit", ["--pid", String(pid), `--nofile=${most}:`]);

/** Whether a launch fails for want of descriptors where so many are left. */
async function isShort(control: DaemonProcess, daemon: DaemonProcess, spare: number): Promise<boolean> {
  bound(daemon, descriptorsOf(daemon) + spare);
  // While it rests after a failure it is given none.
  const { status, body } = await until("a launch that was tried", async () => {
    const answer = await control.call("POST /browsers", { headless: true });
    return answer.status === 529 ? undefined : answer;
  });
  bound(daemon, 4096);
  if (status !== 200) expect(body).toMatchObject({ code: "launch_failed" });
  else await control.call(`DELETE /browsers/${body.session_id}`);
  return status !== 200;
}

fault(
  "a node has no descriptor left: launches fail, what is lent goes on, and the pool fills again",
  async (tell) => {
    const soon = { fill: { backoff_initial_ms: 50, backoff_max_ms: 200 } };
    const control = await fleet.control(soon);
    const { daemon } = await fleet.node("a", soon);
    await control.makePool({ name: "herd", size: 3 });
    const held = (await control.call("POST /browser_pools/herd/acquire", {})).body as Lease;
    // One more each time, so that each step of a launch is the first to have none.
    let spare = 0;
    for (; await isShort(control, daemon, spare); spare += 1);
    expect(spare).toBeGreaterThan(3);
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
  },
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
