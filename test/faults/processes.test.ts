import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect } from "vitest";
import { findHierarchies } from "../../src/browser/resources/cgroup-hierarchy.js";
import { until } from "../support/browser/chromium-until.js";
import type { Lease } from "../support/daemon/daemon.js";
import type { DaemonProcess } from "../support/daemon/daemon-process.js";
import { Fleet } from "../support/daemon/fleet.js";
import { fault, startWatch } from "./fault.js";

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

/** What a launch fails with where so many tasks are left; empty where it does not fail. */
async function failureOf(control: DaemonProcess, limit: TaskLimit, spare: number): Promise<string> {
  limit.leave(spare);
  // While the node rests after a failure it is given none.
  const { status, body, text } = await until("a launch that was tried", async () => {
    const answer = await control.call("POST /browsers", { headless: true });
    return answer.status === 529 ? undefined : answer;
  });
  limit.lift();
  if (status === 200) await control.call(`DELETE /browsers/${body.session_id}`);
  else expect(body).toMatchObject({ code: "launch_failed" });
  return status === 200 ? "" : text;
}

describe.runIf(pids)("where the tasks of a process can be bounded", () => {
  fault(
    "a node may start no process more: launches fail, what is lent goes on, and the pool fills again",
    async (tell) => {
      const soon = { fill: { backoff_initial_ms: 50, backoff_max_ms: 200 } };
      const control = await fleet.control(soon);
      const { daemon } = await fleet.node("a", soon);
      await control.makePool({ name: "herd", size: 3 });
      const held = (await control.call("POST /browser_pools/herd/acquire", {})).body as Lease;
      const limit = new TaskLimit(daemon);
      const failures: string[] = [];
      for (let spare = 0; ; spare += 1) {
        const failure = await failureOf(control, limit, spare);
        if (failure === "") break;
        failures.push(failure);
      }
      expect(failures[0]).toContain("the daemon may have no further process");
      const watch = startWatch();
      await control.poolWhen("herd", (pool) => pool.available_count === 2);
      expect(await control.call("POST /browsers", { headless: true })).toMatchObject({ status: 200 });
      expect((await control.call(`GET /browsers/${held.session_id}`)).body).toMatchObject({
        lease_id: held.lease_id,
      });
      expect(daemon.log).not.toContain("daemon failed");
      limit.remove();
      tell({
        saw: "500 launch_failed from POST /browsers, where no other node is there",
        recoveryMs: watch.since(),
      });
    },
  );
});
