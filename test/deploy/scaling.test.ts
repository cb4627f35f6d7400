import type { V2HPAScalingRules, V2HorizontalPodAutoscaler } from "@kubernetes/client-node";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { ScalingReply } from "../../src/http/schemas/scaling-replies.js";
import { Metrics } from "../../src/observe/metrics.js";
import { systemClock } from "../../src/base/clock.js";
import { scalingOf } from "../../src/pool/scaling.js";
import { makeLogBook } from "../support/http/http-server.js";

const example = (name: string): unknown[] =>
  parseAllDocuments(readFileSync(join(import.meta.dirname, "../../k8s/examples", name), "utf8")).map(
    (document) => document.toJS() as unknown,
  );

interface ScaledObject {
  readonly spec: {
    readonly scaleTargetRef: object;
    readonly minReplicaCount: number;
    readonly advanced: {
      readonly horizontalPodAutoscalerConfig: {
        readonly behavior: { readonly scaleDown: V2HPAScalingRules };
      };
    };
    readonly triggers: readonly {
      readonly type: string;
      readonly metricType: string;
      readonly metadata: Readonly<Record<string, string>>;
    }[];
  };
}
const [, scaled] = example("keda.yaml") as [unknown, ScaledObject];
const [autoscaler] = example("hpa.yaml") as [V2HorizontalPodAutoscaler];

test.each([
  ["KEDA", scaled.spec.advanced.horizontalPodAutoscalerConfig.behavior.scaleDown],
  ["HPA", autoscaler.spec?.behavior?.scaleDown],
])("%s takes away one node a minute at most, after ten minutes", (_name, down) => {
  expect(down).toEqual({
    stabilizationWindowSeconds: 600,
    selectPolicy: "Min",
    policies: [{ type: "Pods", value: 1, periodSeconds: 60 }],
  });
});

test("both scale the Deployment of nodes by an average, which divides by the replicas and looks at no pod", () => {
  const [trigger] = scaled.spec.triggers;
  expect(scaled.spec.scaleTargetRef).toEqual({ kind: "Deployment", name: "remuda-node" });
  expect(autoscaler.spec?.scaleTargetRef).toMatchObject({ kind: "Deployment", name: "remuda-node" });
  expect(trigger?.metricType).toBe("AverageValue");
  expect(autoscaler.spec?.metrics?.[0]?.external?.target.type).toBe("AverageValue");
});

test("KEDA finds the figure in what /scaling answers", () => {
  const { url = "", valueLocation = "" } = scaled.spec.triggers[0]?.metadata ?? {};
  expect(new URL(url).pathname).toBe("/scaling");
  const [section = "", field = ""] = valueLocation.split(".");
  const schema = ScalingReply.properties as Record<string, { properties?: object }>;
  expect(Object.keys(schema[section]?.properties ?? {})).toContain(field);
});

test("the HPA names a series that controls have", async () => {
  const metrics = new Metrics({
    clock: systemClock,
    log: makeLogBook().log,
    aheadMs: async () => 0,
    gauges: { pools: async () => [], nodes: async () => [], scaling: async () => scalingOf([], []) },
  });
  const name = autoscaler.spec?.metrics?.[0]?.external?.metric.name ?? "";
  expect(await metrics.text()).toContain(`\n${name} 0\n`);
});
