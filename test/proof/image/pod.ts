import type { V1Container, V1EnvVar, V1PodSpec, V1Volume } from "@kubernetes/client-node";
import { firstId, ownIds, processMasks } from "../isolation/container.js";

/** A pod as a manifest has it, and what a cluster would add. */
export interface Pod {
  readonly name: string;
  readonly spec: V1PodSpec;
  readonly container: V1Container;
  readonly address: string;
}

/** The image's own words of what is run, as `buildah inspect` tells them. */
export interface ImageConfig {
  readonly User: string;
  readonly Env: readonly string[];
  readonly Entrypoint: readonly string[];
  readonly Cmd: readonly string[];
  readonly WorkingDir: string;
  readonly Healthcheck?: { readonly Test: readonly string[] };
}

/** What a kubelet has at hand for a pod. */
export interface Ground {
  readonly image: ImageConfig;
  readonly secrets: Readonly<Record<string, string>>;
  /** The profile that a Localhost name stands for. */
  readonly seccomp: Seccomp;
  /** The directory on the machine of a volume that is no memory. */
  directoryOf(volume: string): string;
  /** A program that gives the new network namespace its address. */
  readonly attach: string;
}

export interface Seccomp {
  readonly syscalls: readonly { readonly names: readonly string[]; readonly [field: string]: unknown }[];
  readonly [field: string]: unknown;
}

export const hasOwnUsers = ({ spec }: Pod): boolean => spec.hostUsers === false;
/** Whom a volume's directory belongs to, on the machine. */
export const groupOf = (pod: Pod): number =>
  (pod.spec.securityContext?.fsGroup ?? 0) + (hasOwnUsers(pod) ? firstId : 0);

/**
 * System calls in which k8s/seccomp.json goes beyond a runtime's default, and the capability with which
 * containerd allows them as well (docs/isolation.md, In containers). It allows pivot_root to none.
 */
const beyondDefault: Readonly<Record<string, string | undefined>> = {
  mount: "SYS_ADMIN",
  umount: "SYS_ADMIN",
  umount2: "SYS_ADMIN",
  unshare: "SYS_ADMIN",
  setns: "SYS_ADMIN",
  sethostname: "SYS_ADMIN",
  clone: "SYS_ADMIN",
  chroot: "SYS_CHROOT",
  pivot_root: undefined,
};
/** All flags of clone(2) that make a namespace. */
const namespaceFlags = 0x7e020000;

/** RuntimeDefault as containerd has it for a container with these capabilities. */
function runtimeDefault(profile: Seccomp, capabilities: readonly string[]): Seccomp {
  const isDenied = (name: string): boolean =>
    name in beyondDefault && !capabilities.includes(beyondDefault[name] ?? "");
  const plainClone = {
    names: ["clone"],
    action: "SCMP_ACT_ALLOW",
    args: [{ index: 0, value: namespaceFlags, valueTwo: 0, op: "SCMP_CMP_MASKED_EQ" }],
  };
  return {
    ...profile,
    syscalls: [
      ...profile.syscalls.map((rule) => ({ ...rule, names: rule.names.filter((name) => !isDenied(name)) })),
      plainClone,
    ].filter(({ names }) => names.length > 0),
  };
}

function seccompOf({ spec, container }: Pod, profile: Seccomp): Seccomp | undefined {
  const { type } = container.securityContext?.seccompProfile ?? spec.securityContext?.seccompProfile ?? {};
  if (type === "Localhost") return profile;
  if (type === "RuntimeDefault") return runtimeDefault(profile, capabilitiesOf(container));
  return undefined;
}

const capabilitiesOf = ({ securityContext }: V1Container): readonly string[] =>
  securityContext?.capabilities?.add ?? [];

function valueOf({ value, valueFrom }: V1EnvVar, pod: Pod, { secrets }: Ground): string | undefined {
  if (value !== undefined) return value;
  const field = valueFrom?.fieldRef?.fieldPath;
  if (field === "metadata.name") return pod.name;
  if (field === "status.podIP") return pod.address;
  const key = valueFrom?.secretKeyRef?.key;
  return key === undefined ? undefined : secrets[key];
}

const environmentOf = (pod: Pod, ground: Ground): string[] => [
  ...ground.image.Env,
  `HOSTNAME=${pod.name}`,
  ...(pod.container.env ?? []).flatMap((variable) => {
    const value = valueOf(variable, pod, ground);
    return value === undefined ? [] : [`${variable.name}=${value}`];
  }),
];

const bytesOf = (size: string): number => Number(/^(\d+)Gi$/.exec(size)?.[1] ?? Number.NaN) * 2 ** 30;

function mountOf(volume: V1Volume, { destination, isReadOnly, ground }: MountPlace): object {
  const { emptyDir } = volume;
  const size = emptyDir?.sizeLimit;
  if (emptyDir?.medium === "Memory" && size !== undefined)
    return {
      destination,
      type: "tmpfs",
      source: "tmpfs",
      options: ["nosuid", "nodev", "mode=1777", `size=${bytesOf(size)}`],
    };
  const options = ["rbind", isReadOnly ? "ro" : "rw"];
  return { destination, type: "bind", source: ground.directoryOf(volume.name), options };
}
interface MountPlace {
  readonly destination: string;
  readonly isReadOnly: boolean;
  readonly ground: Ground;
}

/** What runtimes mount into every container, its names in the cluster among it. */
const mountsOfAll = (ground: Ground): object[] => [
  { destination: "/proc", type: "proc", source: "proc" },
  { destination: "/dev", type: "tmpfs", source: "tmpfs", options: ["nosuid", "mode=755", "size=65536k"] },
  {
    destination: "/dev/pts",
    type: "devpts",
    source: "devpts",
    options: ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"],
  },
  { destination: "/dev/mqueue", type: "mqueue", source: "mqueue", options: ["nosuid", "noexec", "nodev"] },
  { destination: "/sys", type: "sysfs", source: "sysfs", options: ["nosuid", "noexec", "nodev", "ro"] },
  {
    destination: "/etc/hosts",
    type: "bind",
    source: `${ground.directoryOf("names")}/hosts`,
    options: ["bind", "ro"],
  },
  {
    destination: "/etc/resolv.conf",
    type: "bind",
    source: `${ground.directoryOf("names")}/resolv.conf`,
    options: ["bind", "ro"],
  },
];

function mountsOf({ spec, container }: Pod, ground: Ground): object[] {
  const own = (container.volumeMounts ?? []).map(({ name, mountPath, readOnly = false }) => {
    const volume = spec.volumes?.find((each) => each.name === name);
    if (!volume) throw new Error(`there is no volume ${name}`);
    return mountOf(volume, { destination: mountPath, isReadOnly: readOnly, ground });
  });
  return [...mountsOfAll(ground), ...own];
}

/** The OCI configuration that a kubelet's runtime would make of the pod's one container. */
export function ociOf(pod: Pod, ground: Ground): object {
  const { spec, container } = pod;
  const { runAsUser, runAsGroup, fsGroup } = spec.securityContext ?? {};
  const names = capabilitiesOf(container).map((name) => `CAP_${name}`);
  // An ordinary user has its capabilities in the bounding set alone.
  const held = runAsUser === 0 ? names : [];
  const seccomp = seccompOf(pod, ground.seccomp);
  return {
    ociVersion: "1.0.2",
    hostname: pod.name,
    process: {
      terminal: false,
      user: { uid: runAsUser, gid: runAsGroup, additionalGids: fsGroup === undefined ? [] : [fsGroup] },
      args: [
        ...(container.command ?? ground.image.Entrypoint),
        ...(container.args ?? (container.command ? [] : ground.image.Cmd)),
      ],
      cwd: ground.image.WorkingDir,
      env: environmentOf(pod, ground),
      noNewPrivileges: container.securityContext?.allowPrivilegeEscalation === false,
      capabilities: { bounding: names, effective: held, permitted: held, inheritable: [], ambient: [] },
    },
    root: { path: "rootfs", readonly: container.securityContext?.readOnlyRootFilesystem === true },
    mounts: mountsOf(pod, ground),
    hooks: { createRuntime: [{ path: "/bin/sh", args: ["sh", ground.attach], env: [`PATH=${searched}`] }] },
    linux: {
      namespaces: ["pid", "mount", "ipc", "uts", "network", ...(hasOwnUsers(pod) ? ["user"] : [])].map(
        (type) => ({ type }),
      ),
      ...(hasOwnUsers(pod) && { uidMappings: ownIds, gidMappings: ownIds }),
      ...(container.securityContext?.procMount !== "Unmasked" && processMasks),
      ...(seccomp && { seccomp }),
    },
  };
}
const searched = "/usr/sbin:/usr/bin:/sbin:/bin";
