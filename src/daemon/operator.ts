import { KubeConfig } from "@kubernetes/client-node";
import { CannotStart } from "../base/cannot-start.js";
import { Stops } from "../base/stops.js";
import type { Config } from "../config/config.js";
import { Cluster } from "../operator/cluster.js";
import { Creations } from "../operator/creations.js";
import { makeCostWriter } from "../operator/deletion-costs.js";
import { listenForProbes } from "../operator/health.js";
import { Operator } from "../operator/operator.js";
import { PoolApi } from "../operator/pool-api.js";
import { makeReconcile } from "../operator/reconcile.js";
import type { ProcessContext } from "./shutdown.js";

/** The pod's own account, or what KUBECONFIG names outside of one. */
function readKubeConfig(): KubeConfig {
  const kubeConfig = new KubeConfig();
  kubeConfig.loadFromDefault();
  if (!kubeConfig.getCurrentCluster())
    throw new CannotStart("role operator runs in a pod with a service account, or with KUBECONFIG");
  return kubeConfig;
}

/** Makes pools of BrowserPools. It needs the API and Kubernetes, no Redis and no data directory. */
export async function operatorRole(
  config: Config,
  { clock, log, stopping }: ProcessContext,
  kubeConfig: KubeConfig = readKubeConfig(),
): Promise<Stops> {
  const { apiUrl, namespace, periodMs, requestLimitMs: limitMs } = config.operator;
  if (apiUrl === null || config.apiKey === null)
    throw new CannotStart("role operator needs REMUDA_API_URL and REMUDA_API_KEY");
  const stops = new Stops(clock, config.stop.stepMs);
  const cluster = new Cluster({ kubeConfig, namespace, clock, limitMs, stopping });
  const api = new PoolApi({ url: apiUrl, key: config.apiKey, clock, limitMs, stopping });
  const creations = new Creations({ cluster, api, log });
  const operator = new Operator({
    cluster,
    reconcile: makeReconcile({ cluster, api, creations, clock }),
    settleCreations: () => creations.settle(),
    lookAfterNodes: makeCostWriter({ cluster, api, log }),
    clock,
    log,
    periodMs,
    random: Math.random,
  });
  const { host, port } = config.server;
  const probes = await listenForProbes({ host, port, unready: () => operator.unready() });
  stops.add("probes", () => probes.close());
  stops.add("operator", operator.start());
  log.info({ namespace, port: probes.port }, "operating BrowserPools");
  return stops;
}
