import type { V1ConfigMap, V1Deployment, V1PodSpec } from "@kubernetes/client-node";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { RungName } from "../../../src/spec/bodies.js";
import { manifestOf, render } from "../../support/kubernetes/kustomize.js";

/** A security context as a pod has it: system calls, what is covered of /proc, and who the daemon is. */
export interface Context {
  readonly name: string;
  readonly seccomp?: object;
  readonly isProcMasked: boolean;
  /** What pods of its overlay have. */
  readonly pod?: Pod;
  /**
   * The daemon is root of a user namespace of the pod's own with these capabilities there; otherwise an
   * ordinary user without any.
   */
  readonly rootWith?: readonly string[];
  /**
   * What docs/isolation.md, In containers, says of browsers in it; on the rung `none` nothing is launched.
   */
  readonly expected: { readonly rung: RungName; readonly network: "namespace" | "none" };
  /** It lies in the repository for operators to use, so everything is tried in it. */
  readonly isShipped?: true;
}

/** What the manifests give a pod beside its security context. */
export interface Pod {
  readonly settings: { readonly node: { readonly uid_base?: number }; readonly browser: object };
  /** The size of /dev/shm, where directories of browsers lie. */
  readonly sharedMemoryBytes: number;
}

/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET. */
const namespaceFlags = 0x7e020000;
/** Models how containerd's default profile judges a container without capabilities. */
const runtimeDefault = {
  defaultAction: "SCMP_ACT_ALLOW",
  syscalls: [
    {
      names: [
        "unshare",
        "setns",
        "chroot",
        "mount",
        "umount",
        "umount2",
        "pivot_root",
        "sethostname",
        "setdomainname",
        "mount_setattr",
        "move_mount",
        "open_tree",
        "fsopen",
        "fsmount",
        "fsconfig",
        "fspick",
        "bpf",
        "perf_event_open",
        "init_module",
        "finit_module",
        "delete_module",
        "kexec_load",
        "reboot",
        "swapon",
        "swapoff",
        "acct",
        "quotactl",
        "syslog",
        "open_by_handle_at",
        "keyctl",
        "add_key",
        "request_key",
        "userfaultfd",
      ],
      action: "SCMP_ACT_ERRNO",
      errnoRet: 1,
    },
    {
      names: ["clone"],
      action: "SCMP_ACT_ERRNO",
      errnoRet: 1,
      args: [{ index: 0, value: namespaceFlags, valueTwo: 0x10000000, op: "SCMP_CMP_MASKED_EQ" }],
    },
    // ENOSYS makes the C library fall back to clone, whose flags can be judged.
    { names: ["clone3"], action: "SCMP_ACT_ERRNO", errnoRet: 38 },
  ],
};

/** An overlay's node, as its manifests have it (docs/deployment.md, Kubernetes). */
async function nodeOf(directory: string, overlay: string): Promise<{ spec: V1PodSpec; pod: Pod }> {
  const rendered = await render(join(directory, "overlays", overlay));
  const { spec } = manifestOf<V1Deployment>(rendered, "Deployment", "remuda-node").spec?.template ?? {};
  const config = manifestOf<V1ConfigMap>(rendered, "ConfigMap", "remuda-config").data?.["config.json"] ?? "";
  const { node, browser } = JSON.parse(config) as Pod["settings"];
  const size = spec?.volumes?.find(({ name }) => name === "shm")?.emptyDir?.sizeLimit;
  const [, gibibytes] = /^(\d+)Gi$/.exec(size ?? "") ?? [];
  if (!spec || gibibytes === undefined) throw new Error(`overlays/${overlay} has no node with a volume shm`);
  return { spec, pod: { settings: { node, browser }, sharedMemoryBytes: Number(gibibytes) * 2 ** 30 } };
}

async function netns(directory: string): Promise<Context> {
  const { spec, pod } = await nodeOf(directory, "netns");
  const { capabilities, procMount } = spec.containers[0]?.securityContext ?? {};
  if (spec.hostUsers !== false || spec.securityContext?.runAsUser !== 0 || !capabilities?.add)
    throw new Error("overlays/netns is not root of a user namespace of its own with capabilities");
  return {
    name: "k8s/overlays/netns",
    seccomp: await profileIn(directory, "seccomp.json"),
    isProcMasked: procMount !== "Unmasked",
    isShipped: true,
    pod,
    rootWith: capabilities.add.map((name) => `CAP_${name}`),
    expected: { rung: "root-mounts", network: "namespace" },
  };
}

const profileIn = async (directory: string, name: string): Promise<object> =>
  JSON.parse(await readFile(join(directory, name), "utf8")) as object;

/**
 * Every context that can be tried: none, the runtime's default, the profiles that lie in the directory, and
 * the overlay whose pods have a user namespace of their own.
 */
export async function findContexts(directory: string): Promise<readonly Context[]> {
  const files = (await readdir(directory)).filter((name) => /^seccomp.*\.json$/.test(name));
  if (files.length === 0) throw new Error(`${directory} has no profile of seccomp`);
  const { pod } = await nodeOf(directory, "restricted");
  const shipped = await Promise.all(
    files.map(async (name) => ({
      name: `k8s/${name}`,
      seccomp: await profileIn(directory, name),
      pod,
      isProcMasked: true,
      isShipped: true as const,
      expected: { rung: "shared-proc", network: "namespace" } as const,
    })),
  );
  return [
    {
      name: "no seccomp, /proc unmasked",
      isProcMasked: false,
      expected: { rung: "user-namespace", network: "namespace" },
    },
    {
      name: "no seccomp, /proc masked",
      isProcMasked: true,
      expected: { rung: "shared-proc", network: "namespace" },
    },
    ...shipped,
    await netns(directory),
    {
      name: "runtime's default",
      seccomp: runtimeDefault,
      isProcMasked: true,
      expected: { rung: "none", network: "none" },
    },
  ];
}
