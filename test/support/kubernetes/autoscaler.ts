/** Kubernetes changes nothing within a tenth of the target. */
const tolerance = 0.1;

/** As GetExternalPerPodMetricReplicas of kube-controller-manager 1.35 computes it. */
export function scaledFrom(nodes: number, wanted: number, target: number): number {
  const ratio = (wanted * 1000) / (target * 1000 * nodes);
  return Math.abs(1 - ratio) <= tolerance ? nodes : Math.ceil((wanted * 1000) / (target * 1000));
}
