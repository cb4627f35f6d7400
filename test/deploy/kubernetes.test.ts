import type {
  V1ConfigMap,
  V1Container,
  V1Deployment,
  V1DeploymentSpec,
  V1NetworkPolicy,
  V1PodDisruptionBudget,
  V1PodSpec,
  V1Service,
} from "@kubernetes/client-node";
import { readFileSync, writeFileSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { type Config, openConfig } from "../../src/config/config.js";
import { leaves } from "../../src/config/settings.js";
import { type Manifest, manifestOf, render, renderers, sorted } from "../support/kubernetes/kustomize.js";
import { podSecurityFaults } from "../support/kubernetes/pod-security.js";
import { faultsOf } from "../support/kubernetes/schema.js";
import { newDirectory } from "../support/killed-runs.js";

const root = join(import.meta.dirname, "../..");
const overlays = ["trial", "restricted", "apparmor", "netns"] as const;
const pathOf = (overlay: string): string => join(root, "k8s/overlays", overlay);
const secret = "0123456789abcdef";

/** What each variable of a pod is given there. */
const given: Readonly<Record<string, string>> = {
  REDIS_URL: "redis://r",
  REMUDA_CLUSTER_SECRET: secret,
  REMUDA_ENCRYPTION_KEY: secret,
  REMUDA_API_KEY: secret,
  REMUDA_API_URL: "http://remuda-control",
  REMUDA_NAMESPACE: "remuda",
  REMUDA_HOST: "10.0.0.7",
  REMUDA_NODE_ID: "remuda-node-5d8f9c7b64-x2x9k",
};

interface Pod {
  readonly name: string;
  readonly spec: V1PodSpec;
  readonly container: V1Container;
}
function podOf(manifests: readonly Manifest[], role: string): Pod {
  const name = `remuda-${role}`;
  const spec = manifestOf<V1Deployment>(manifests, "Deployment", name).spec?.template.spec;
  const container = spec?.containers[0];
  if (!spec || !container) throw new Error(`${name} has no container`);
  return { name, spec, container };
}

const configText = (manifests: readonly Manifest[]): string =>
  manifestOf<V1ConfigMap>(manifests, "ConfigMap", "remuda-config").data?.["config.json"] ?? "";

/** What a pod of that role makes of the environment and the file it is given. */
function configOf(manifests: readonly Manifest[], role: string): Config {
  const file = join(newDirectory("config"), "config.json");
  writeFileSync(file, configText(manifests));
  const names = (podOf(manifests, role).container.env ?? []).map(({ name }) => name);
  const env = Object.fromEntries(names.flatMap((name) => (given[name] ? [[name, given[name]]] : [])));
  const opened = openConfig({ packageRoot: root, env: { ...env, REMUDA_ROLE: role, REMUDA_CONFIG: file } });
  if (opened.kind === "refused") throw new Error(opened.faults.join());
  return opened.config;
}

const gibibytes = (text: string | undefined): number => Number(/^(\d+)Gi$/.exec(text ?? "")?.[1]) * 2 ** 30;

describe.each(overlays)("overlay %s", (overlay) => {
  describe.each(renderers)("by %s", (_name, renderWith) => {
    const rendered = renderWith(pathOf(overlay));

    test("is what the tests' renderer makes of it", async () => {
      expect(sorted(await rendered)).toEqual(sorted(await render(pathOf(overlay))));
    });
    test("has no field that Kubernetes does not know, and no value of another type", async () => {
      expect((await rendered).flatMap(faultsOf)).toEqual([]);
    });
    test("lies in one namespace", async () => {
      const spaces = (await rendered).flatMap(({ metadata }) => metadata.namespace ?? []);
      expect([...new Set(spaces)]).toEqual(["remuda"]);
    });
  });

  const manifests = render(pathOf(overlay));

  test("its pods pass the Pod Security that its namespace enforces", async () => {
    const namespace = manifestOf<V1ConfigMap>(await manifests, "Namespace", "remuda");
    const level = namespace.metadata?.labels?.["pod-security.kubernetes.io/enforce"];
    const roles = ["control", "node", "operator", ...(overlay === "trial" ? ["redis"] : [])];
    const faults = podSecurityFaults(
      level ?? "",
      roles.map(async (role) => podOf(await manifests, role)),
    );
    expect(await faults).toEqual([]);
  });

  test.each(["control", "node"])("a pod of role %s is given all the time its stop may take", async (role) => {
    const { drain, stop } = configOf(await manifests, role);
    const { spec, container } = podOf(await manifests, role);
    const pauseSeconds = container.lifecycle?.preStop?.sleep?.seconds ?? 0;
    const graceMs = ((spec.terminationGracePeriodSeconds ?? 0) - pauseSeconds) * 1000;
    expect(graceMs).toBeGreaterThan(drain.limitMs + stop.limitMs + stop.hurriedMs);
  });

  test("a node's grace is its drain and 30 s, and ends before autoscalers kill", async () => {
    const { drain } = configOf(await manifests, "node");
    const grace = podOf(await manifests, "node").spec.terminationGracePeriodSeconds ?? 0;
    expect(grace).toBe(drain.limitMs / 1000 + 30);
    expect(grace).toBeLessThan(600);
  });

  test.each(["control", "node"])("the variables of role %s are ours, and suffice", async (role) => {
    const names = (podOf(await manifests, role).container.env ?? []).map(({ name }) => name);
    const known = ["REMUDA_CONFIG", ...leaves.flatMap(({ setting }) => setting.env ?? [])];
    expect(names.filter((name) => !known.includes(name))).toEqual([]);
    expect(configOf(await manifests, role).role).toBe(role);
  });

  test("the form of vaults is reached where its configuration says that it listens", async () => {
    const { host, port, publicUrl } = configOf(await manifests, "control").vault.form;
    const { ports = [] } = podOf(await manifests, "control").container;
    expect(ports).toContainEqual({ name: "form", containerPort: port });
    const { spec } = manifestOf<V1Service>(await manifests, "Service", "remuda-form");
    expect(spec).toMatchObject({ selector: { role: "control" }, ports: [{ targetPort: "form" }] });
    const policy = manifestOf<V1NetworkPolicy>(await manifests, "NetworkPolicy", "remuda-control");
    expect(policy.spec?.ingress?.[0]?.ports).toContainEqual({ port: "form" });
    const isTrial = overlay === "trial";
    expect({ host, publicUrl }).toEqual(
      isTrial
        ? { host: "127.0.0.1", publicUrl: null }
        : { host: "0.0.0.0", publicUrl: expect.stringMatching(/^https:/) },
    );
  });

  test("the operator's pod has a key of its own, and no secret of the other pods", async () => {
    const { env = [] } = podOf(await manifests, "operator").container;
    const secrets = env.flatMap(({ name, valueFrom }) =>
      valueFrom?.secretKeyRef ? [{ variable: name, secret: valueFrom.secretKeyRef.name }] : [],
    );
    expect(secrets).toEqual([{ variable: "REMUDA_API_KEY", secret: "remuda-operator" }]);
    expect(configOf(await manifests, "operator").role).toBe("operator");
  });

  test("nodes are called like their pods", async () => {
    const { env = [] } = podOf(await manifests, "node").container;
    const id = env.find(({ name }) => name === "REMUDA_NODE_ID");
    expect(id?.valueFrom?.fieldRef?.fieldPath).toBe("metadata.name");
    expect(configOf(await manifests, "node").node.id).toBe(given["REMUDA_NODE_ID"]);
  });

  test.each(["control", "node"])("a pod of role %s has probes, and nothing of the cluster", async (role) => {
    const { spec, container } = podOf(await manifests, role);
    expect(container.startupProbe?.httpGet?.path).toBe("/healthz");
    expect(container.livenessProbe?.httpGet?.path).toBe("/healthz");
    expect(container.readinessProbe?.httpGet?.path).toBe("/readyz");
    // No Service of ours turns into a setting, and no page finds a token.
    expect(spec).toMatchObject({ enableServiceLinks: false, automountServiceAccountToken: false });
    expect(container.securityContext?.readOnlyRootFilesystem).toBe(true);
    const { requests, limits } = container.resources ?? {};
    expect(requests?.["memory"]).toBe(limits?.["memory"]);
    const keys = spec.topologySpreadConstraints?.map(({ topologyKey }) => topologyKey);
    expect(keys).toEqual(["topology.kubernetes.io/zone", "kubernetes.io/hostname"]);
  });

  test("what browsers store is bounded, and counted as the memory that it is", async () => {
    const { spec, container } = podOf(await manifests, "node");
    const sizes = (spec.volumes ?? []).flatMap(({ emptyDir, name }) =>
      emptyDir ? [{ name, ...emptyDir }] : [],
    );
    expect(sizes.filter(({ sizeLimit }) => sizeLimit === undefined)).toEqual([]);
    const shared = gibibytes(sizes.find(({ name }) => name === "shm")?.sizeLimit);
    const { node, browser } = configOf(await manifests, "node");
    expect(node.memoryBytes + shared).toBe(gibibytes(container.resources?.limits?.["memory"]));
    // Two that store all they may leave the others room.
    expect(browser.maxScratchBytes).toBeLessThanOrEqual(shared / 2);
  });

  test("machines can be emptied, a part of the nodes at a time", async () => {
    const budgetOf = async (role: string) =>
      manifestOf<V1PodDisruptionBudget>(await manifests, "PodDisruptionBudget", `remuda-${role}`).spec;
    expect(await budgetOf("node")).toMatchObject({
      maxUnavailable: "25%",
      unhealthyPodEvictionPolicy: "AlwaysAllow",
    });
    expect(await budgetOf("control")).toMatchObject({ maxUnavailable: 1 });
  });

  test("no volume of a pod keeps the cluster autoscaler from removing its machine", async () => {
    // The trial's Redis has the only copy of what it keeps, so its machine stays.
    const deployments = (await manifests).filter(
      ({ kind, metadata }) => kind === "Deployment" && metadata.name !== "remuda-redis",
    );
    const named = deployments.map(({ metadata: { name }, spec }) => {
      const { metadata, spec: pod } = (spec as V1DeploymentSpec).template;
      const safe = metadata?.annotations?.["cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"];
      const onDisk = (pod?.volumes ?? []).filter(({ emptyDir }) => emptyDir && emptyDir.medium !== "Memory");
      return [name, safe ?? "", onDisk.map((volume) => volume.name).join()] as const;
    });
    expect(named).toHaveLength(3);
    expect(named.filter(([, safe, onDisk]) => safe !== onDisk)).toEqual([]);
  });
});

test("each overlay says how browsers get their roots", async () => {
  const contextOf = async (overlay: string) => {
    const { spec, container } = podOf(await render(pathOf(overlay)), "node");
    return {
      hostUsers: spec.hostUsers,
      ...spec.securityContext?.seccompProfile,
      ...container.securityContext,
    };
  };
  expect(await contextOf("trial")).toMatchObject({ type: "Unconfined", capabilities: { drop: ["ALL"] } });
  expect(await contextOf("restricted")).toMatchObject({
    type: "Localhost",
    localhostProfile: "remuda.json",
    capabilities: { drop: ["ALL"] },
  });
  expect(await contextOf("netns")).toMatchObject({
    hostUsers: false,
    procMount: "Unmasked",
    type: "Localhost",
    localhostProfile: "remuda.json",
    capabilities: { drop: ["ALL"], add: expect.arrayContaining(["SYS_ADMIN", "NET_ADMIN", "SETUID"]) },
  });
});

test("the overlay for AppArmor is the restricted one and the profile that lies beside it", async () => {
  const [restricted, apparmor] = await Promise.all([
    render(pathOf("restricted")),
    render(pathOf("apparmor")),
  ]);
  const { spec } = podOf(apparmor, "node");
  const [, name] = /^profile (\S+) /m.exec(readFileSync(join(root, "k8s/apparmor-remuda"), "utf8")) ?? [];
  expect(spec.securityContext?.appArmorProfile).toEqual({ type: "Localhost", localhostProfile: name });
  delete spec.securityContext?.appArmorProfile;
  expect(apparmor).toEqual(restricted);
});

test("browsers of a pod with users of its own have uids that it has", async () => {
  const { node } = configOf(await render(pathOf("netns")), "node");
  // A kubelet gives each such pod 65,536 ids; a daemon takes a thousand for its browsers.
  expect(node.uidBase + 1000).toBeLessThan(65_536);
});

test("a field that there is not is found, and a value of another type", () => {
  const manifest = {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name: "x" },
    spec: { maxUnavailble: 1, selector: { matchLabels: { app: 7 } } },
  };
  expect(faultsOf(manifest)).toEqual([
    "PodDisruptionBudget x.spec.maxUnavailble is unknown",
    "PodDisruptionBudget x.spec.selector.matchLabels.app is no string",
  ]);
});

test("each example of a kind that Kubernetes has is one that it knows", async () => {
  const directory = join(root, "k8s/examples");
  const texts = (await readdir(directory)).map((name) => readFile(join(directory, name), "utf8"));
  const examples = (await Promise.all(texts)).flatMap((text) =>
    parseAllDocuments(text).map((document) => document.toJS() as Manifest),
  );
  const own = examples.filter(({ apiVersion }) => !/remuda\.|keda\.|monitoring\./.test(apiVersion));
  expect(own.length).toBeGreaterThan(0);
  expect(own.flatMap(faultsOf)).toEqual([]);
});

test("the seccomp file allows what private roots need beyond a runtime's defaults, and nothing else that those deny", () => {
  const { defaultAction, syscalls } = JSON.parse(readFileSync(join(root, "k8s/seccomp.json"), "utf8")) as {
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
