import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { onTestFinished } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import { findTool } from "../../../src/browser/executable.js";
import {
  findNamespaces,
  type NamespaceParts,
  type Namespaces,
  type NamespaceTools,
} from "../../../src/egress/namespace/namespace.js";
import { silentLog } from "../browser/chromium-host.js";

const [nsenter = "", unshare = ""] = await Promise.all([findTool("nsenter"), findTool("unshare")]);
export const tools: Required<NamespaceTools> = { nsenter, unshare };

export const parts = (given: Partial<NamespaceParts> = {}): NamespaceParts => ({
  tools,
  clock: systemClock,
  log: silentLog,
  spare: 0,
  ...given,
});

export async function findOnes(
  given: Partial<NamespaceParts> = {},
): Promise<Extract<Namespaces, { kind: "available" }>> {
  const found = await findNamespaces(parts(given));
  if (found.kind === "unavailable") throw new Error(found.why);
  return found;
}

export const own = (): string => readlinkSync("/proc/thread-self/ns/net");
/** What this process has open, each with its number. */
export const descriptors = (): readonly string[] =>
  readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      return [`${fd} ${readlinkSync(`/proc/self/fd/${fd}`)}`];
    } catch {
      // It was for this look.
      return [];
    }
  });
/** What it has opened since and not closed, whatever others of the process have closed meanwhile. */
export const openedSince = (before: readonly string[]): readonly string[] =>
  descriptors().filter((each) => !before.includes(each));

/** Every process that is in the namespace or holds it open. */
export function holdersOf(name: string): string[] {
  const linksTo = (path: string): boolean => {
    try {
      return readlinkSync(path) === name;
    } catch {
      return false;
    }
  };
  const held = (pid: string): boolean => {
    try {
      return readdirSync(`/proc/${pid}/fd`).some((fd) => linksTo(`/proc/${pid}/fd/${fd}`));
    } catch {
      return false;
    }
  };
  return readdirSync("/proc").filter(
    (pid) => /^\d+$/.test(pid) && (linksTo(`/proc/${pid}/ns/net`) || held(pid)),
  );
}

/** The children of this process that make namespaces. */
export const helpers = (): string[] =>
  readFileSync(`/proc/self/task/${process.pid}/children`, "utf8")
    .trim()
    .split(" ")
    .filter((pid) => pid !== "" && isHelper(pid));

/** One that has ended meanwhile is none. */
function isHelper(pid: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("namespace/helper.mjs");
  } catch {
    return false;
  }
}

/** A server that greets whoever connects. */
export function greeter(greeting: string): Server {
  const server = createServer((socket) => socket.end(greeting));
  onTestFinished(() => void server.close());
  return server;
}

/**
 * The only one of them. Where there is none nothing may be signalled: 0 would be this whole process group.
 */
export function onlyHelper(): number {
  const [pid, ...others] = helpers();
  if (pid === undefined || others.length > 0) throw new Error(`helpers: ${[pid, ...others].join()}`);
  return Number(pid);
}
