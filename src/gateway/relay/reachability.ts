import type { Clock, Millis } from "../../base/clock.js";
import type { NodeAddress } from "../ports.js";
import { requestTo } from "./post.js";

/** What this process lacks to ask anybody, which says nothing of whoever is asked. */
const ownLack = new Set(["EMFILE", "ENFILE", "ENOBUFS", "ENOMEM", "EADDRNOTAVAIL", "EAGAIN"]);

/** Whether the server of a node answers within a limit, whatever it says; undefined where it was not asked. */
export const isReachable = (
  node: NodeAddress,
  { clock, limitMs }: { clock: Clock; limitMs: Millis },
): Promise<boolean | undefined> =>
  new Promise((resolve) => {
    const asking = requestTo(node, { path: "/healthz", agent: false });
    const cancel = clock.after(limitMs, () => settle(false));
    const settle = (isAnswered: boolean | undefined): void => {
      cancel();
      asking.destroy();
      resolve(isAnswered);
    };
    asking
      .once("response", () => settle(true))
      .on("error", ({ code = "" }: NodeJS.ErrnoException) => settle(ownLack.has(code) ? undefined : false))
      .end();
  });
