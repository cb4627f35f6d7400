import { pause } from "../base/clock.js";
import { textOf } from "../base/log.js";
import { banner } from "./banner.js";
import type { Config } from "../config/config.js";
import { apiKeyFile } from "../config/kept.js";
import type { DaemonContext } from "./boot.js";
import type { PoolOperations } from "../pool/operations.js";

interface Announcing extends Pick<DaemonContext, "clock" | "log" | "stopping"> {
  readonly config: Config;
  readonly url: string;
  readonly installRoot: string;
  readonly pools: PoolOperations;
}

const lookEveryMs = 100;
const patienceMs = 120_000;

/**
 * Tells a person how to go on, once the first declared pool has an idle browser; says why it has none where
 * that takes long.
 */
export function announce(announcing: Announcing): void {
  void tell(announcing).catch((error: unknown) =>
    announcing.log.warn({ error: textOf(error) }, "readiness was not announced"),
  );
}

async function tell({ config, url, installRoot, pools, clock, log, stopping }: Announcing): Promise<void> {
  const name = String(config.pools[0]?.["name"] ?? "");
  if (name === "") return;
  for (let waitedMs = 0; waitedMs < patienceMs && !stopping.aborted; waitedMs += lookEveryMs) {
    const pool = await pools.get(name);
    if (pool.kind === "done" && pool.value.counts.idle > 0) {
      process.stdout.write(
        banner({
          url,
          pool: name,
          installRoot,
          keyFile: config.apiKey ? null : apiKeyFile(config),
          openHosts: config.egress.privateHosts,
        }),
      );
      return;
    }
    await pause(clock, lookEveryMs, stopping);
  }
  const pool = await pools.get(name);
  if (!stopping.aborted && pool.kind === "done")
    log.warn({ pool: name, fill: pool.value.fill }, "no browser is idle yet");
}
