import type { V2HPAScalingRules, V2HorizontalPodAutoscaler } from "@kubernetes/client-node";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { ScalingReply } from "../../src/http/schemas/scaling-replies.js";
import { Metrics } from "../../src/observe/metrics.js";
import { systemClock } from "../../src/base/clock.js";
import { scalingOf } from "../../src/pool/scaling.js";
import { makeLogBook } from "../support/http/http-server.js";
import { scaledFrom } from "../support/kubernetes/autoscaler.js";

const textOf = (name: string): string =>
  readFileSync(join(import.meta.dirname, "../../k8s/examples", name), "utf8");
const example = (name: string): unknown[] =>
  parseAllDocuments(textOf(name)).map((document) => document.toJS() as unknown);

interface ScaledObject {
  readonly spec: {
    readonly scaleTargetRef: object;
    readonly minReplicaCount: number;
    readonly fallback?: { readonly behavior?: string };
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

const targets = [
  ["KEDA", Number(scaled.spec.triggers[0]?.metadata["targetValue"])],
  ["HPA", quantity(autoscaler.spec?.metrics?.[0]?.external?.target.averageValue)],
] as const;

function quantity(text = ""): number {
  const [, number, milli] = /^([\d.]+)(m?)$/.exec(text) ?? [];
  return Number(number) / (milli ? 1000 : 1);
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

describe.each(targets)("%s by its target", (_name, target) => {
  test("leaves no node missing, however near the nodes are to what is wanted", () => {
    const missing = upTo(120).flatMap((nodes) =>
      upTo(nodes + 12)
        .filter((wanted) => scaledFrom(nodes, wanted, target) < wanted)
        .map((wanted) => ({ nodes, wanted })),
    );
    expect(missing).toEqual([]);
  });

  test("grows no further than to a ninth more than is wanted, in one step, and stays there", () => {
    const faults = upTo(120).flatMap((nodes) =>
      upTo(nodes + 12)
        .map((wanted) => {
          const first = scaledFrom(nodes, wanted, target);
          return { nodes, wanted, first, next: scaledFrom(first, wanted, target) };
        })
        .filter(
          ({ wanted, first, next }) =>
            first > Math.max(nodes, Math.ceil(wanted + wanted / 9)) || next !== first,
        ),
    );
    expect(faults).toEqual([]);
  });
});

test("KEDA is asked for in the version that has what the example uses", () => {
  const [, major, minor] = /^#.*KEDA (\d+)\.(\d+) or newer/m.exec(textOf("keda.yaml")) ?? [];
  expect(scaled.spec.fallback?.behavior).toBe("currentReplicasIfHigher");
  // KEDA 2.17 is the first with fallback.behavior (kedacore/keda#6464); one before it falls to one node.
  expect(Number(major) * 1000 + Number(minor)).toBeGreaterThanOrEqual(2017);
});

test.each(["keda.yaml", "hpa.yaml"])(
  "%s names the component without which an apply undoes what it scaled",
  (name) => {
    expect(textOf(name)).toContain("components/autoscaled");
  },
);

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
