import type { V1Container, V1PodSpec } from "@kubernetes/client-node";

interface Pod {
  readonly name: string;
  readonly spec: V1PodSpec;
  readonly container: V1Container;
}

/** What Pod Security `restricted` of Kubernetes 1.36 asks of a pod, as far as ours could fail it. */
const rules: readonly (readonly [string, (pod: Pod) => boolean])[] = [
  ["runs as root", ({ spec }) => spec.securityContext?.runAsNonRoot === true],
  ["has uid 0", ({ spec }) => spec.securityContext?.runAsUser !== 0],
  [
    "has no seccomp profile",
    ({ spec }) => ["RuntimeDefault", "Localhost"].includes(spec.securityContext?.seccompProfile?.type ?? ""),
  ],
  ["has no AppArmor profile", ({ spec }) => spec.securityContext?.appArmorProfile?.type !== "Unconfined"],
  ["unmasks /proc", ({ container }) => (container.securityContext?.procMount ?? "Default") === "Default"],
  ["may gain privileges", ({ container }) => container.securityContext?.allowPrivilegeEscalation === false],
  [
    "keeps capabilities",
    ({ container }) => container.securityContext?.capabilities?.drop?.includes("ALL") === true,
  ],
  ["adds capabilities", ({ container }) => container.securityContext?.capabilities?.add === undefined],
  ["uses the machine's namespaces", ({ spec }) => !spec.hostNetwork && !spec.hostPID && !spec.hostIPC],
  [
    "has a volume of the machine",
    ({ spec }) => (spec.volumes ?? []).every((volume) => volume.hostPath === undefined),
  ],
  ["is privileged", ({ container }) => container.securityContext?.privileged !== true],
];

/** `privileged` asks nothing. */
export async function podSecurityFaults(
  level: string,
  pods: readonly Promise<Pod>[],
): Promise<readonly string[]> {
  if (level === "privileged") return [];
  if (level !== "restricted") throw new Error(`${level}: no level that is known here`);
  return (await Promise.all(pods)).flatMap((pod) =>
    rules.flatMap(([fault, holds]) => (holds(pod) ? [] : [`${pod.name} ${fault}`])),
  );
}
