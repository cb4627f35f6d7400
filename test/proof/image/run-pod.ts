import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, chown, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "../../../src/base/clock.js";
import { within } from "../../../src/base/deadline.js";
import { crunIn } from "../isolation/container.js";
import { groupOf, type Ground, type ImageConfig, ociOf, type Pod, type Seccomp } from "./pod.js";

export interface RunningPod {
  readonly pod: Pod;
  /** Its first process, as this machine numbers it. */
  pid(): Promise<number>;
  /** How its runtime has ended, if it has. */
  ended(): number | null;
  log(): string;
  /** Where a volume of it lies. */
  volume(name: string): string;
  /** Its container dies at once; its volumes stay. */
  kill(): Promise<void>;
  /** Asks it to end; gives the exit code of its first process. */
  stop(limitMs: number): Promise<number | null>;
}

interface Place {
  readonly directory: string;
  /** Where the image's root lies. */
  readonly root: string;
  readonly image: ImageConfig;
  readonly secrets: Readonly<Record<string, string>>;
  readonly seccomp: Seccomp;
  /** The configuration file of all pods. */
  readonly config: string;
  readonly hosts: string;
  attachment(directory: string): Promise<string>;
}

/** Does a kubelet's work for one pod: its volumes, its names, its network, and a runtime that runs it. */
export async function runPod(pod: Pod, place: Place): Promise<RunningPod> {
  const directory = join(place.directory, pod.name);
  await mkdir(join(directory, "rootfs"), { recursive: true });
  const directoryOf = (volume: string): string => join(directory, "volumes", volume);
  await mkdir(directoryOf("names"), { recursive: true });
  await writeFile(join(directoryOf("names"), "hosts"), place.hosts);
  await writeFile(join(directoryOf("names"), "resolv.conf"), "nameserver 127.0.0.53\n");
  for (const volume of pod.spec.volumes ?? []) await makeVolume(pod, directoryOf(volume.name));
  if (pod.spec.volumes?.some(({ configMap }) => configMap))
    await writeFile(join(directoryOf("config"), "config.json"), place.config);
  const ground: Ground = {
    image: place.image,
    secrets: place.secrets,
    seccomp: place.seccomp,
    directoryOf,
    attach: await place.attachment(directory),
  };
  await writeFile(join(directory, "config.json"), JSON.stringify(ociOf(pod, ground)));
  // Bound to a place that every user may come to, as runtimes have it.
  const [program = "", ...args] = crunIn(directory, `mount --bind ${place.root} "$0/rootfs"`);
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (said += text));
  const pid = async (): Promise<number> => Number(await readFile(join(directory, "pid"), "utf8"));
  return {
    pod,
    pid,
    ended: () => child.exitCode,
    log: () => said,
    volume: directoryOf,
    async kill() {
      const ended = once(child, "exit");
      process.kill(await pid(), "SIGKILL");
      await ended;
    },
    stop: (limitMs) => stop(child, pid, limitMs),
  };
}

async function makeVolume(pod: Pod, directory: string): Promise<void> {
  await mkdir(directory, { recursive: true });
  const group = groupOf(pod);
  await chown(directory, group, group);
  await chmod(directory, 0o2777);
}

/** crun hands the signal on to nobody, so the first process is told itself. */
async function stop(
  child: ChildProcess,
  pid: () => Promise<number>,
  limitMs: number,
): Promise<number | null> {
  if (child.exitCode !== null) return child.exitCode;
  const ended = once(child, "exit");
  try {
    process.kill(await pid(), "SIGTERM");
    await within(systemClock, { what: "stopping a pod", limitMs }, ended);
  } catch {
    await pid()
      .then((first) => process.kill(first, "SIGKILL"))
      .catch(() => child.kill("SIGKILL"));
    return null;
  }
  return child.exitCode;
}
