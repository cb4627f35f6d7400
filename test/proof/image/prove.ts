import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { enclosed } from "../enclosed.js";
import { isRoot } from "../isolation/programs.js";
import { type Driven, drive, type Standing, standingOf } from "./drive.js";
import { type PodNetwork, openPodNetwork } from "./network.js";
import { type Deployed, deploy } from "./overlay.js";
import { firstId } from "../isolation/container.js";
import type { ImageConfig } from "./pod.js";
import { openSites, type Sites } from "./sites.js";

const run = promisify(execFile);
const directory = join(process.cwd(), ".prove-image");
const image = "localhost/remuda-prove";
/**
 * The container of buildah's in which the image's root is mounted. One that a killed run has left is taken
 * away.
 */
const container = "remuda-prove-root";
const largestBytes = 2.5 * 2 ** 30;

/** What docs/deployment.md and docs/isolation.md say of each overlay. */
const promised = {
  trial: {
    rung: "shared-proc",
    uid: "1000",
    capabilities: "0000000000000000",
    seccomp: "0",
    hasMasks: "true",
  },
  restricted: {
    rung: "shared-proc",
    uid: "1000",
    capabilities: "0000000000000000",
    seccomp: "2",
    hasMasks: "true",
  },
  netns: {
    rung: "root-mounts",
    uid: String(firstId),
    capabilities: "00000000002011eb",
    seccomp: "2",
    hasMasks: "false",
  },
} as const;
type Overlay = keyof typeof promised;

let faults = 0;
function check(what: string, holds: boolean, found: unknown): void {
  faults += holds ? 0 : 1;
  console.log(`${holds ? "ok    " : "FAULT "} ${what}: ${String(found)}`);
}

interface Built {
  readonly root: string;
  readonly config: ImageConfig;
}

async function build(): Promise<void> {
  const script = join(process.cwd(), "test/proof/image/build.sh");
  await run(script, [directory, image], { maxBuffer: 2 ** 26 });
}

/** Its root is mounted for this process and what it starts, for as long as it lives. */
async function openImage(): Promise<Built> {
  await run("buildah", ["rm", container]).catch(() => {});
  await run("buildah", ["from", "--pull-never", "--name", container, image]);
  const { stdout } = await run("buildah", ["mount", container]);
  const text = await readFile(join(directory, "image.json"), "utf8");
  const { Docker } = JSON.parse(text) as { Docker: { config: ImageConfig } };
  return { root: stdout.trim(), config: Docker.config };
}

async function checkImage({ root, config }: Built): Promise<void> {
  check("the image's user is no root", !["", "0", "root"].includes(config.User), config.User);
  const first = config.Entrypoint.join(" ");
  check("its first process reaps what others leave", first.startsWith("/usr/bin/tini"), first);
  const test = config.Healthcheck?.Test ?? [];
  check("it has a health check", test[0] === "CMD", test.slice(0, 2).join(" "));
  const { stdout } = await run("du", ["-sxB1", root]);
  const bytes = Number.parseInt(stdout, 10);
  check("it is small enough", bytes < largestBytes, `${(bytes / 2 ** 20).toFixed(0)} MiB unpacked`);
  const parts = [
    "usr/lib/chromium",
    "usr/lib/x86_64-linux-gnu",
    "usr/share",
    "usr/local",
    "app/node_modules",
  ];
  const { stdout: sizes } = await run("du", ["-smx", ...parts.map((part) => join(root, part))]);
  console.log(
    `       ${sizes.trim().replaceAll(`${root}/`, "").replaceAll("\t", " MiB ").replaceAll("\n", ", ")}`,
  );
  const version = await run("chroot", [root, "node", "--version"]);
  check("its Node.js is an LTS line", /^v(22|24|26)\./.test(version.stdout), version.stdout.trim());
  const left = await run("chroot", [
    root,
    "sh",
    "-c",
    "ls /app/node_modules | grep -cx -e typescript -e vitest || true",
  ]);
  check("it has no tools of development", left.stdout.trim() === "0", left.stdout.trim());
}

function checkDriven(overlay: Overlay, driven: Driven): void {
  const { rung } = promised[overlay];
  check(`${overlay}: the page was reached`, driven.title === "allowed", driven.title);
  check(`${overlay}: a picture of it was taken`, driven.pictureBytes > 1000, `${driven.pictureBytes} bytes`);
  check(`${overlay}: rung`, driven.rung === rung, driven.rung);
  check(`${overlay}: egress tier`, driven.network === "namespace", driven.network);
  check(
    `${overlay}: Chromium's sandbox is on`,
    driven.hasSandbox && driven.isRendererFiltered,
    driven.hasSandbox,
  );
  const isOwn = overlay === "netns" ? (driven.uid ?? 0) > 1000 : true;
  check(`${overlay}: the browser's uid`, isOwn, driven.uid);
  check(`${overlay}: nothing ended is left unreaped`, driven.zombies === 0, driven.zombies);
}

/** Both are on this machine, and the pod itself comes to both: what keeps the page from one is its rules. */
function checkPrivate(overlay: Overlay, driven: Driven, { denied }: Sites): void {
  const asked = denied.asked();
  check(`${overlay}: a private address is reached by the pod`, driven.isReachedByPod, denied.url);
  check(
    `${overlay}: it is denied to the page, and not asked for it`,
    driven.deniedStatus === 403 && asked === 1,
    `${driven.deniedStatus}, ${asked - 1} times`,
  );
}

function checkStanding(overlay: Overlay, standing: Standing): void {
  const { uid, capabilities, seccomp, hasMasks } = promised[overlay];
  const wanted: Partial<Standing> = { uid, capabilities, seccomp, hasMasks, isRootReadOnly: "true" };
  const names: Readonly<Record<keyof Standing, string>> = {
    uid: "uid on the machine",
    capabilities: "capabilities",
    seccomp: "seccomp",
    isRootReadOnly: "the root is read-only",
    hasMasks: "/proc is masked",
    opened: "of the machine's /proc it opens",
    first: "process 1",
  };
  for (const [name, found] of Object.entries(standing) as [keyof Standing, string][])
    check(
      `${overlay}: ${names[name]}`,
      found === { opened: "nothing", first: "/usr/bin/tini", ...wanted }[name],
      found,
    );
}

async function tryHealth(pid: number, { Healthcheck }: ImageConfig): Promise<boolean> {
  const [, ...command] = Healthcheck?.Test ?? [];
  const inside = [
    "--target",
    String(pid),
    "--mount",
    "--net",
    "--",
    "env",
    "PATH=/usr/local/bin:/usr/bin:/bin",
  ];
  // It asks the loopback address, on which a control listens and a node, told its pod's address, does not.
  return await run("nsenter", [...inside, ...command]).then(
    () => true,
    () => false,
  );
}

/** What a node journals lies in a volume of its pod, which outlives the container. */
async function tryRestart(overlay: Overlay, deployed: Deployed, sites: Sites): Promise<void> {
  const journal = join(deployed.node.volume("data"), "journal");
  const kept = (await readdir(journal)).filter((name) => name.endsWith(".sealed"));
  await deployed.restartNode();
  const left = await readdir(journal);
  check(
    `${overlay}: a node keeps its journal`,
    kept.length > 0 && kept.every((name) => left.includes(name)),
    kept.length,
  );
  const { title } = await drive(deployed, sites);
  check(`${overlay}: after a restart of its container it is driven`, title === "allowed", title);
}

async function tryOverlay(overlay: Overlay, built: Built, { network, sites }: Ground): Promise<void> {
  const deployed = await deploy(overlay, built, { network, directory: podsDirectory });
  try {
    checkStanding(overlay, await standingOf(deployed));
    const isHealthy = await tryHealth(await deployed.control.pid(), built.config);
    check(`${overlay}: the image's health check`, isHealthy, isHealthy);
    sites.denied.forget();
    const driven = await drive(deployed, sites);
    checkDriven(overlay, driven);
    checkPrivate(overlay, driven, sites);
    await tryRestart(overlay, deployed, sites);
  } catch (error) {
    check(`${overlay}: is driven`, false, error instanceof Error ? error.message : error);
    console.log(deployed.node.log().slice(-4000));
  }
  for (const [name, code] of await deployed.close())
    check(`${overlay}: ${name} ends when asked`, code === 0 || code === 143, code);
}

interface Ground {
  readonly network: PodNetwork;
  readonly sites: Sites;
}
const podsDirectory = join(directory, "pods");

/** With a network, mounts and processes of its own: nothing of it has to be taken back. */
async function tryPods(asked: readonly Overlay[]): Promise<void> {
  await mkdir(podsDirectory, { recursive: true });
  await run("mount", ["-t", "tmpfs", "-o", "mode=0755", "tmpfs", podsDirectory]);
  const built = await openImage();
  await checkImage(built);
  const network = await openPodNetwork();
  const sites = await openSites(network);
  for (const overlay of asked)
    await tryOverlay(overlay, built, { network, sites }).catch((error: unknown) =>
      check(`${overlay}: starts`, false, error instanceof Error ? error.message : error),
    );
  await sites.close();
  await run("buildah", ["rm", container]);
}

const steps: Readonly<Record<string, (asked: readonly Overlay[]) => Promise<void>>> = {
  build,
  pods: tryPods,
};

/** Gives how many things do not hold. */
async function take(step: string, asked: readonly Overlay[]): Promise<number> {
  const [program = "", ...args] = enclosed(
    { hasOwnNetwork: step === "pods" },
    process.execPath,
    fileURLToPath(import.meta.url),
    `--${step}`,
    ...asked,
  );
  const child = spawn(program, args, { stdio: "inherit" });
  const [code] = (await once(child, "exit")) as [number | null];
  return code ?? 1;
}

async function main([first = "", ...rest]: readonly string[]): Promise<void> {
  const step = steps[first.replace(/^--/, "")];
  const named = (step ? rest : [first, ...rest]).filter((name): name is Overlay => name in promised);
  const asked = named.length > 0 ? named : (Object.keys(promised) as Overlay[]);
  if (step) return await step(asked);
  if (!isRoot) return check("the image", false, "NOT PROVED: it takes root");
  faults += await take("build", asked);
  if (faults === 0) faults += await take("pods", asked);
  console.log(faults === 0 ? "all hold" : `${faults} do not`);
}

await main(process.argv.slice(2));
process.exitCode = Math.min(faults, 100);
