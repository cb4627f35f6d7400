import { textOf } from "../../base/log.js";
import type { DaemonParts } from "../parts.js";

/**
 * Declares once more, where Redis has been emptied, what the configuration says that there is. Nodes restore
 * what they had of it first: whichever of them lives has beaten by `node.lost_after_ms`.
 */
export function declareAgain(
  {
    config: { node },
    clock,
    log,
    stores: { dataset },
  }: Pick<DaemonParts, "config" | "clock" | "log" | "stores">,
  declare: () => Promise<void>,
): () => void {
  let known: string | undefined;
  let cancel = (): void => {};
  const declareNow = (): void =>
    void declare().catch((error: unknown) =>
      log.error({ error: textOf(error) }, "declared pools were not looked for in an emptied Redis"),
    );
  const look = async (): Promise<void> => {
    const { name } = (await dataset.join(undefined)).dataset;
    if (known !== undefined && name !== known) {
      cancel();
      cancel = clock.after(node.lostAfterMs, declareNow);
    }
    known = name;
  };
  const stop = clock.every(node.beatPeriodMs, () => void look().catch(() => {}));
  return () => {
    stop();
    cancel();
  };
}
