import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished } from "vitest";
import { findHierarchies } from "../../src/browser/resources/cgroup-hierarchy.js";
import type { DaemonProcess } from "../support/daemon/daemon-process.js";
import { until } from "../support/browser/chromium-until.js";
import type { Lease } from "../support/daemon/daemon.js";
import { Fleet } from "../support/daemon/fleet.js";
import { connectRaw } from "../support/gateway/raw-cdp.js";
import { fault, startWatch } from "../support/faults/fault.js";
import { launchOnDemand, proveStarved, type StarvedNode } from "../support/faults/starved-node.js";

const isRoot = process.getuid?.() === 0;
const pids = isRoot
  ? (await findHierarchies()).find(({ controllers }) => controllers.includes("pids"))
  : undefined;

let fleet: Fleet;
beforeEach(async () => {
  fleet = await Fleet.open();
});
afterEach(() => fleet.close());

/** A group of the kernel's for one daemon alone, which bounds how many tasks it may have. */
class TaskLimit {
  readonly #path = join(pids?.own ?? "", `remuda-test-tasks-${process.pid}`);

  constructor({ pid }: DaemonProcess) {
    mkdirSync(this.#path);
    // A test that fails has not removed it.
    onTestFinished(() => this.remove());
    this.#write("cgroup.procs", pid);
  }
  /** So many more than there are. */
  leave(spare: number): void {
    this.#write("pids.max", Number(readFileSync(join(this.#path, "pids.current"), "utf8")) + spare);
  }
  lift(): void {
    this.#write("pids.max", "max");
  }
  remove(): void {
    if (!existsSync(this.#path)) return;
    const above = join(pids?.own ?? "", "cgroup.procs");
    for (const pid of readFileSync(join(this.#path, "cgroup.procs"), "utf8").split("\n").filter(Boolean))
      writeFileSync(above, pid);
    rmdirSync(this.#path);
  }
  #write(name: string, value: number | string): void {
    writeFileSync(join(this.#path, name), String(value));
  }
}

/** Why a launch fails where so many tasks are left; empty where it does not fail. */
async function failureOf(node: StarvedNode, limit: TaskLimit, spare: number): Promise<string> {
  limit.leave(spare);
  const { status, body, text } = await launchOnDemand(node);
  limit.lift();
  if (status === 200) await node.control.call(`DELETE /browsers/${body.session_id}`);
  else expect(body).toMatchObject({ code: "launch_failed" });
  return status === 200 ? "" : text;
}

describe.runIf(pids)("where the tasks of a process can be bounded", () => {
  fault(
    "a node may start no process more: launches fail, what is lent goes on, and the pool fills again",
    (tell) =>
      proveStarved(fleet, tell, async (node) => {
        const limit = new TaskLimit(node.daemon);
        const failures: string[] = [];
        for (let spare = 0; failures.at(-1) !== ""; spare += 1)
          failures.push(await failureOf(node, limit, spare));
        expect(failures[0]).toContain("the daemon may have no further process");
        limit.remove();
      }),
  );

  fault(
    "a node may start no thread more: long messages are refused, short ones go on, and the daemon lives",
    async (tell) => {
      const control = await fleet.control();
      const { daemon } = await fleet.node("a");
      await control.makePool({ name: "herd", size: 1 });
      const { cdp_ws_url: url } = (await control.call("POST /browser_pools/herd/acquire", {})).body as Lease;
      const limit = new TaskLimit(daemon);
      limit.leave(0);
      // The thread that reads long messages is started with the first client.
      const client = await connectRaw(url);
      const long = () => client.send("Target.activateTarget", { targetId: "x".repeat(2 ** 20) });
      for (const { error } of await Promise.all([long(), long()]))
        expect(error?.message).toContain("could not be read");
      expect(await client.send("Browser.getVersion")).toHaveProperty("result");
      limit.lift();
      const watch = startWatch();
      await until("a long message that is read", async () =>
        (await long()).error?.message.includes("could not be read") ? undefined : true,
      );
      await client.close();
      limit.remove();
      expect(daemon.log).not.toContain("daemon failed");
      tell({ saw: "an error as the answer to a command of more than 64 KiB", recoveryMs: watch.since() });
    },
  );
});
