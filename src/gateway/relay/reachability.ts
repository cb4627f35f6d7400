import type { Clock, Millis } from "../../base/clock.js";
import type { NodeAddress } from "../ports.js";
import { requestTo } from "./post.js";

/** Whether the server of a node answers within a limit, whatever it says. */
export const isReachable = (
  node: NodeAddress,
  { clock, limitMs }: { clock: Clock; limitMs: Millis },
): Promise<boolean> =>
  new Promise((resolve) => {
    const asking = requestTo(node, { path: "/healthz", agent: false });
    const cancel = clock.after(limitMs, () => settle(false));
    const settle = (isAnswered: boolean): void => {
      cancel();
      asking.destroy();
      resolve(isAnswered);
    };
    asking
      .once("response", () => settle(true))
      .on("error", () => settle(false))
      .end();
  });
