import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openConfig } from "../../src/config/config.js";
import { leaves } from "../../src/config/settings.js";

const root = join(import.meta.dirname, "../..");
const manifest = (name: string): string => readFileSync(join(root, "k8s", name), "utf8");
const secret = "0123456789abcdef";
const given = {
  REDIS_URL: "redis://r",
  REMUDA_CLUSTER_SECRET: secret,
  REMUDA_ENCRYPTION_KEY: secret,
  REMUDA_API_KEY: secret,
};

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
  const env = Object.fromEntries(
    names.flatMap((name) => (values[name] === undefined ? [] : [[name, values[name]]])),
  );
  expect(openConfig({ packageRoot: root, env }).kind).toBe("opened");
});

test("no Service of ours turns into a setting", () => {
  for (const name of ["control.yaml", "node.yaml"])
    expect(manifest(name)).toContain("enableServiceLinks: false");
});

test("the seccomp file allows what private roots need beyond a runtime's defaults, and nothing else that those deny", () => {
  const { defaultAction, syscalls } = JSON.parse(manifest("seccomp.json")) as {
    defaultAction: string;
    syscalls: readonly { names: readonly string[]; action: string; args?: unknown }[];
  };
  const allowed = new Set(
    syscalls
      .filter(({ action, args }) => action === "SCMP_ACT_ALLOW" && args === undefined)
      .flatMap(({ names }) => names),
  );
  expect(defaultAction).toBe("SCMP_ACT_ERRNO");
  const needed = ["chroot", "clone", "mount", "pivot_root", "sethostname", "setns", "umount2", "unshare"];
  expect(needed.filter((name) => !allowed.has(name))).toEqual([]);
  const denied = [
    "add_key",
    "bpf",
    "fsmount",
    "init_module",
    "kexec_load",
    "keyctl",
    "mount_setattr",
    "open_by_handle_at",
    "perf_event_open",
    "reboot",
    "request_key",
    "swapon",
    "userfaultfd",
  ];
  expect(denied.filter((name) => allowed.has(name))).toEqual([]);
});

test("nodes name the seccomp file that is shipped", () => {
  expect(manifest("node.yaml")).toContain(
    "seccompProfile: { type: Localhost, localhostProfile: remuda.json }",
  );
});

const gibibytes = (text: string | undefined): number => Number(/^(\d+)Gi$/.exec(text ?? "")?.[1]) * 2 ** 30;

test("what browsers store is bounded, and counted as the memory that it is", () => {
  const node = manifest("node.yaml");
  const limit = gibibytes(/limits: \{ memory: (\w+) \}/.exec(node)?.[1]);
  const shared = gibibytes(/name: shm, emptyDir: \{ medium: Memory, sizeLimit: (\w+) \}/.exec(node)?.[1]);
  const config = JSON.parse(/config\.json: \|\n((?: {4}.*\n)+)/.exec(manifest("config.yaml"))?.[1] ?? "") as {
    node: { memory_bytes: number };
    browser: { max_scratch_bytes: number };
  };
  expect(config.node.memory_bytes + shared).toBe(limit);
  // Two that store all they may leave the others room.
  expect(config.browser.max_scratch_bytes).toBeLessThanOrEqual(shared / 2);
});
