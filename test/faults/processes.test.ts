import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect } from "vitest";
import { findHierarchies } from "../../src/browser/resources/cgroup-hierarchy.js";
import type { DaemonProcess } from "../support/daemon/daemon-process.js";
import { Fleet } from "../support/daemon/fleet.js";
import { fault } from "./fault.js";
import { launchOnDemand, proveStarved, type StarvedNode } from "./starved-node.js";

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
});
