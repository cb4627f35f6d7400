import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { findHierarchies } from "../../../src/browser/resources/cgroup-hierarchy.js";
import { bound } from "../bound.js";
import { until } from "../browser/chromium-until.js";

const memory = (await findHierarchies()).find(({ controllers }) => controllers.includes("memory"));
const files = { 1: "memory.limit_in_bytes", 2: "memory.max" } as const;

/** A control group of the kernel's, whose processes have no more memory than this together. */
export class MemoryLimit {
  readonly path: string;

  constructor(name: string, bytes: number) {
    this.path = join(memory?.own ?? "", `remuda-test-${name}-${process.pid}`);
    mkdirSync(this.path);
    writeFileSync(join(this.path, files[memory?.version ?? 1]), `${bytes}`);
  }

  /** The head of a command that enters it. */
  get through(): readonly string[] {
    return ["sh", "-c", `echo $$ > ${join(this.path, "cgroup.procs")} && exec "$@"`, "sh"];
  }

  /** A process in it that takes so much, until the call that this gives. */
  async take(bytes: number): Promise<() => Promise<void>> {
    const script = `globalThis.held = Buffer.alloc(${bytes}, 1); console.log("held"); setInterval(() => {}, 2 ** 30)`;
    const [program = "", ...args] = [...this.through, ...bound(process.execPath, "-e", script)];
    const child: ChildProcess = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"] });
    const ended = once(child, "close");
    await Promise.race([once(child.stdout as Readable, "data"), ended]);
    return async () => {
      child.kill("SIGKILL");
      await ended;
    };
  }

  /** Fails where a process or another group is left in it for long. */
  async remove(): Promise<void> {
    await until("an empty group", () => {
      try {
        rmdirSync(this.path);
        return true;
      } catch {
        return false;
      }
    });
  }
}

/** Whether this machine lets such a group be made. */
export const canLimitMemory = ((): boolean => {
  if (!memory) return false;
  try {
    rmdirSync(new MemoryLimit("trial", 2 ** 30).path);
    return true;
  } catch {
    return false;
  }
})();
