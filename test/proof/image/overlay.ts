import type { V1ConfigMap, V1Deployment, V1Probe } from "@kubernetes/client-node";
import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { type Manifest, manifestOf, render } from "../../support/kubernetes/kustomize.js";
import type { PodNetwork } from "./network.js";
import type { ImageConfig, Pod, Seccomp } from "./pod.js";
import { type RunningPod, runPod } from "./run-pod.js";

const manifests = join(process.cwd(), "k8s");
const startLimitMs = 180_000;
const stopLimitMs = 60_000;

interface BuiltImage {
  readonly root: string;
  readonly config: ImageConfig;
}

/** A deployment of one overlay: its Redis, a control and a node, each a container of the image. */
export interface Deployed {
  readonly url: string;
  readonly key: string;
  readonly node: RunningPod;
  readonly control: RunningPod;
  /** The node's container dies, and is started again on the volumes that the pod has. */
  restartNode(): Promise<void>;
  /** Ends all pods, the node first; gives how each has ended. */
  close(): Promise<ReadonlyMap<string, number | null>>;
}

/** The trial's Redis stands in for the one that another deployment brings. */
const redisOf = async (): Promise<Manifest[]> => await render(join(manifests, "overlays/trial"));

function podOf(rendered: readonly Manifest[], role: string, address: string): Pod {
  const name = `remuda-${role}`;
  const spec = manifestOf<V1Deployment>(rendered, "Deployment", name).spec?.template.spec;
  const container = spec?.containers[0];
  if (!spec || !container) throw new Error(`${name} has no container`);
  return { name: `${name}-0`, spec, container, address };
}

/**
 * The overlay's own configuration, with the bridge's addresses open to browsers, and told by which address it
 * is reached.
 */
function configOf(rendered: readonly Manifest[], { range }: PodNetwork, url: string): string {
  const map = manifestOf<V1ConfigMap>(rendered, "ConfigMap", "remuda-config");
  const config = JSON.parse(map.data?.["config.json"] ?? "") as Record<string, object>;
  return JSON.stringify({
    ...config,
    server: { ...config["server"], public_url: url },
    egress: { ...config["egress"], private_hosts: [range] },
  });
}

interface DeployPlace {
  readonly network: PodNetwork;
  /** What pods keep lies below it. */
  readonly directory: string;
}

export async function deploy(
  overlay: string,
  image: BuiltImage,
  { network, directory: parent }: DeployPlace,
): Promise<Deployed> {
  const directory = await mkdtemp(join(parent, `${overlay}-`));
  const rendered = await render(join(manifests, "overlays", overlay));
  const pods = [
    podOf(await redisOf(), "redis", network.addressOf(2)),
    podOf(rendered, "control", network.addressOf(3)),
    podOf(rendered, "node", network.addressOf(4)),
  ];
  const url = `http://${network.addressOf(3)}:4700`;
  const key = randomBytes(16).toString("hex");
  const secrets = {
    "api-key": key,
    "cluster-secret": randomBytes(32).toString("hex"),
    "encryption-key": randomBytes(32).toString("hex"),
    "redis-url": "redis://remuda-redis:6379",
  };
  const seccomp = JSON.parse(await readFile(join(manifests, "seccomp.json"), "utf8")) as Seccomp;
  const hosts = `127.0.0.1 localhost\n${network.addressOf(2)} remuda-redis\n`;
  const config = configOf(rendered, network, url);
  const running: RunningPod[] = [];
  const close = async (): Promise<ReadonlyMap<string, number | null>> => {
    const ended = new Map<string, number | null>();
    for (const each of running.splice(0).toReversed()) ended.set(each.pod.name, await each.stop(stopLimitMs));
    await rm(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    return ended;
  };
  const startAt = async (at: number): Promise<RunningPod> => {
    const pod = pods[at];
    if (!pod) throw new Error(`there is no pod ${at}`);
    const attachment = (of: string): Promise<string> => network.attachment(of, at + 2);
    const place = { directory, secrets, seccomp, config, hosts, attachment };
    running[at] = await runPod(pod, { ...place, root: image.root, image: image.config });
    return running[at];
  };
  try {
    const [, control, node] = [await startAt(0), await startAt(1), await startAt(2)];
    for (const each of [control, node]) await untilReady(each);
    const deployed = { url, key, node, control, close };
    const restartNode = async (): Promise<void> => {
      await deployed.node.kill();
      deployed.node = await startAt(2);
      await untilReady(deployed.node);
    };
    return Object.assign(deployed, { restartNode });
  } catch (error) {
    await close();
    throw error;
  }
}

/** Asks what its manifest has a kubelet ask. */
async function untilReady({ pod, log, ended }: RunningPod): Promise<void> {
  const { startupProbe, readinessProbe } = pod.container;
  const until = Date.now() + startLimitMs;
  const areAnswered = async (): Promise<boolean> =>
    (await isAnswered(startupProbe, pod.address)) && (await isAnswered(readinessProbe, pod.address));
  while (!(await areAnswered())) {
    if (Date.now() > until || ended() !== null)
      throw new Error(`${pod.name} is not ready: ${log().slice(-3000)}`);
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

const isAnswered = (probe: V1Probe | undefined, address: string): Promise<boolean> =>
  fetch(`http://${address}:4700${probe?.httpGet?.path ?? ""}`, { signal: AbortSignal.timeout(5000) }).then(
    (response) => response.ok,
    () => false,
  );
