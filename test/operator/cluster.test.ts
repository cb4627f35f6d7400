import { getEventListeners } from "node:events";
import { KubeConfig } from "@kubernetes/client-node";
import { expect, test } from "vitest";
import { systemClock } from "../../src/base/clock.js";
import { Cluster } from "../../src/operator/cluster.js";

test("a watch that has ended leaves nothing with what would have stopped it", async () => {
  const kubeConfig = new KubeConfig();
  // Nothing listens there, so that each watch ends at once.
  kubeConfig.loadFromClusterAndUser(
    { name: "none", server: "http://127.0.0.1:1", skipTLSVerify: true },
    { name: "nobody" },
  );
  const stopping = new AbortController().signal;
  const cluster = new Cluster({
    kubeConfig,
    namespace: "herds",
    clock: systemClock,
    limitMs: 5000,
    stopping,
  });
  for (let count = 0; count < 3; count += 1)
    await expect(cluster.watch("1", () => {})).rejects.toThrow(/ECONNREFUSED/);
  expect(getEventListeners(stopping, "abort")).toEqual([]);
});
