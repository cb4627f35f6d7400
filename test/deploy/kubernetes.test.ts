import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openConfig } from "../../src/config.js";
import { leaves } from "../../src/config/settings.js";

const root = join(import.meta.dirname, "../..");
const manifest = (name: string): string => readFileSync(join(root, "k8s", name), "utf8");
const secret = "0123456789abcdef";
const given = { REDIS_URL: "redis://r", REMUDA_CLUSTER_SECRET: secret, REMUDA_ENCRYPTION_KEY: secret, REMUDA_API_KEY: secret };

test.each(["control", "node"])("a pod of role %s is given all the time its stop may take", (role) => {
  const opened = openConfig({ packageRoot: root, env: { ...given, REMUDA_ROLE: role } });
  if (opened.kind === "refused") throw new Error(opened.faults.join());
  const { drain, stop } = opened.config;
  const graceSeconds = Number(/terminationGracePeriodSeconds: (\d+)/.exec(manifest(`${role}.yaml`))?.[1]);
  expect(graceSeconds * 1000).toBeGreaterThan(drain.limitMs + stop.limitMs + stop.hurriedMs);
});

test.each(["control", "node"])("the variables of role %s are ours, and suffice", (role) => {
  const names = [...manifest(`${role}.yaml`).matchAll(/name: ([A-Z_]+),/g)].map((match) => match[1] ?? "");
  const known = ["REMUDA_CONFIG", ...leaves.flatMap(({ setting }) => setting.env ?? [])];
  expect(names.filter((name) => !known.includes(name))).toEqual([]);
  const values: Record<string, string> = { ...given, REMUDA_ROLE: role, REMUDA_HOST: "10.0.0.7" };
  const env = Object.fromEntries(names.flatMap((name) => (values[name] === undefined ? [] : [[name, values[name]]])));
  expect(openConfig({ packageRoot: root, env }).kind).toBe("opened");
});

test("no Service of ours turns into a setting", () => {
  for (const name of ["control.yaml", "node.yaml"]) expect(manifest(name)).toContain("enableServiceLinks: false");
});
