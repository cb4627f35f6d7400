import { homeOf, onDemandHome } from "./base/ids.js";
import { onDemandLabel } from "./pool/labels.js";
import type { State } from "./state.js";
import type { PoolReading, Readings } from "./telemetry/metrics.js";

/** What a control shows of the store at each scrape. */
export const readingsOf = ({ homes, projects, nodes }: State): Readings => ({
  async pools() {
    const pools = (await Promise.all((await projects.pools()).map((id) => homes.findPool(homeOf(id))))).flatMap((pool) => pool ?? []);
    const named = pools.map(({ name, id, counts: { waiting, stale: _stale, ...states } }): PoolReading => ({ pool: name ?? id, states, waiting }));
    const { browsers } = await homes.browsers(onDemandHome);
    const states: Record<string, number> = {};
    for (const { state } of browsers) states[state] = (states[state] ?? 0) + 1;
    return [...named, { pool: onDemandLabel, states, waiting: 0 }];
  },
  async nodes() {
    const living = await nodes.living();
    const draining = living.filter((node) => node.isDraining).length;
    return [{ state: "ready", count: living.length - draining }, { state: "draining", count: draining }];
  },
});
