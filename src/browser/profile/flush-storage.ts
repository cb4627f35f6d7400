import { readFile } from "node:fs/promises";
import { type Clock, type Millis, pause } from "../../base/clock.js";
import type { Cdp } from "../cdp/cdp.js";
import type { Pages } from "../cdp/pages.js";
import { isLiving, killProcess, processTreeOf } from "../resources/processes.js";

const lookAgainMs = 4;

interface Flushing {
  readonly cdp: Cdp;
  /** The pid of the process that was spawned for the browser. */
  readonly pid: number;
  readonly pages: Pick<Pages, "oldest">;
  readonly clock: Clock;
}

/** This name is reserved, so no page can ever have stored anything there (RFC 6761, 6.4). */
const nobody = "https://remuda.invalid";

/**
 * Has Chromium write down what pages have put into localStorage. It does so 5 s after a change, or as soon as
 * no process has the storage open; at Chromium's exit a process of its own writes the rest
 * (storage.mojom.StorageService, Chromium 156) and is killed where it is slower than the main process: on a
 * busy machine whole logins were lost. So the pages' processes are ended, and the process that writes is
 * asked something that it answers when it has written.
 */
export async function flushStorage({ cdp, pid, pages, clock }: Flushing, limitMs: Millis): Promise<void> {
  const deadline = clock.monotonic() + limitMs;
  const rest = (): Millis => Math.max(0, deadline - clock.monotonic());
  const renderers = await renderersOf(pid);
  for (const renderer of renderers) killProcess(renderer);
  while ((await anyLives(renderers)) && rest() > 0) await pause(clock, lookAgainMs);
  const targetId =
    pages.oldest() ??
    (await cdp.send("Target.createTarget", { url: "about:blank" }, { limitMs: rest() })).targetId;
  const { sessionId: session } = await cdp.send(
    "Target.attachToTarget",
    { targetId, flatten: true },
    { limitMs: rest() },
  );
  // The end of a page's process and the first question may be seen in either order; before the second, both
  // were.
  for (let asked = 0; asked < 2; asked += 1) {
    await cdp.send(
      "Storage.clearDataForOrigin",
      { origin: nobody, storageTypes: "local_storage" },
      { session, limitMs: rest() },
    );
  }
}

/** A renderer that a zygote started has its command line in one piece, with blanks. */
async function renderersOf(pid: number): Promise<number[]> {
  const tree = await processTreeOf(pid);
  const commands = await Promise.all(
    tree.map((each) => readFile(`/proc/${each}/cmdline`, "latin1").catch(() => "")),
  );
  return tree.filter((_, at) => /[\0 ]--type=renderer[\0 ]/.test(commands[at] ?? ""));
}

const anyLives = async (pids: readonly number[]): Promise<boolean> =>
  (await Promise.all(pids.map(isLiving))).includes(true);
