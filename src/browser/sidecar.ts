import type { Sidecar } from "./chromium.js";
import type { BrowserHost } from "./host.js";
import { type StartedProcess, startWalled } from "./isolation/syscall-filter.js";
import { insideOf, type PreparedLaunch } from "./launch-preparation.js";
import { sidecarLimits } from "./resources/limits.js";

/**
 * Starts a program beside a browser: it has the browser's uid and is counted with it, and ends with it where
 * there are cgroups. Throws, with a text for people, where it cannot.
 */
export function startSidecar(
  prepared: PreparedLaunch,
  { prlimit }: Pick<BrowserHost, "prlimit">,
  { command, files, memoryBytes }: Sidecar,
): Promise<StartedProcess> {
  const { cgroup, walls } = prepared;
  const limited = [...sidecarLimits(prlimit, memoryBytes), ...command];
  return startWalled(
    walls,
    [...(cgroup?.prefix ?? []), ...walls.sidecar(insideOf(prepared), limited, files)],
    {
      stdio: ["pipe", "pipe", "ignore", "pipe", "pipe"],
      // A session of its own, so that no signal of a terminal reaches it.
      detached: true,
      cwd: "/",
      env: {},
    },
  );
}
