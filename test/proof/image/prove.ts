import { execFile } from "node:child_process";
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { isRoot } from "../isolation/programs.js";
import { type Driven, drive, standingOf } from "./drive.js";
import { openPodNetwork, type PodNetwork } from "./network.js";
import { deploy } from "./overlay.js";
import { firstId, type ImageConfig } from "./pod.js";

const run = promisify(execFile);
const directory = join(process.cwd(), ".prove-image");
const largestBytes = 2.5 * 2 ** 30;

/** What docs/deployment.md and docs/isolation.md say of each overlay. */
const promised = {
  trial: { rung: "shared-proc", uid: "1000", capabilities: "0000000000000000", seccomp: "0" },
  restricted: { rung: "shared-proc", uid: "1000", capabilities: "0000000000000000", seccomp: "2" },
  netns: { rung: "root-mounts", uid: String(firstId), capabilities: "00000000002011eb", seccomp: "2" },
} as const;
type Overlay = keyof typeof promised;

let faults = 0;
function check(what: string, holds: boolean, found: unknown): void {
  faults += holds ? 0 : 1;
  console.log(`${holds ? "ok    " : "FAULT "} ${what}: ${String(found)}`);
}

interface Built {
  readonly container: string;
  readonly root: string;
  readonly config: ImageConfig;
}

async function build(): Promise<Built> {
  const script = join(process.cwd(), "test/proof/image/build.sh");
  const { stdout } = await run(script, [directory], { maxBuffer: 2 ** 26 });
  const [container = "", root = ""] = stdout.trim().split("\n").at(-1)?.split(" ") ?? [];
  const text = await readFile(join(directory, "image.json"), "utf8");
  const { Docker } = JSON.parse(text) as { Docker: { config: ImageConfig } };
  return { container, root, config: Docker.config };
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
  check(`${overlay}: a private address is denied`, driven.isDenied, driven.isDenied);
  const isOwn = overlay === "netns" ? (driven.uid ?? 0) > 1000 : true;
  check(`${overlay}: the browser's uid`, isOwn, driven.uid);
  check(`${overlay}: nothing ended is left unreaped`, driven.zombies === 0, driven.zombies);
}

interface Ground {
  readonly network: PodNetwork;
  /** The URL of the page that is driven. */
  readonly page: string;
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

async function tryOverlay(overlay: Overlay, built: Built, { network, page }: Ground): Promise<void> {
  const deployed = await deploy(overlay, built, network);
  try {
    const standing = await standingOf(deployed);
    const { uid, capabilities, seccomp } = promised[overlay];
    check(`${overlay}: uid on the machine`, standing["uid"] === uid, standing["uid"]);
    check(`${overlay}: capabilities`, standing["capabilities"] === capabilities, standing["capabilities"]);
    check(`${overlay}: seccomp`, standing["seccomp"] === seccomp, standing["seccomp"]);
    check(
      `${overlay}: the root is read-only`,
      standing["isRootReadOnly"] === "true",
      standing["isRootReadOnly"],
    );
    check(`${overlay}: process 1`, standing["first"] === "/usr/bin/tini", standing["first"]);
    const isHealthy = await tryHealth(await deployed.control.pid(), built.config);
    check(`${overlay}: the image's health check`, isHealthy, isHealthy);
    checkDriven(overlay, await drive(deployed, page, "http://192.168.77.1/"));
  } catch (error) {
    check(`${overlay}: is driven`, false, error instanceof Error ? error.message : error);
    console.log(deployed.node.log().slice(-4000));
  }
  for (const [name, code] of await deployed.close())
    check(`${overlay}: ${name} ends when asked`, code === 0 || code === 143, code);
}

async function main(): Promise<void> {
  if (!isRoot) {
    check("the image", false, "NOT PROVED: it takes root");
    return;
  }
  const asked = process.argv.slice(2).filter((name): name is Overlay => name in promised);
  const built = await build();
  const network = await openPodNetwork();
  const site = createServer((_request, response) => {
    response.setHeader("content-type", "text/html");
    response.end("<!doctype html><title>allowed</title><h1>allowed</h1>");
  });
  await new Promise<void>((resolve) => void site.listen(0, network.host, resolve));
  const address = site.address();
  const port = typeof address === "object" ? (address?.port ?? 0) : 0;
  try {
    await checkImage(built);
    for (const overlay of asked.length > 0 ? asked : (Object.keys(promised) as Overlay[]))
      await tryOverlay(overlay, built, { network, page: `http://${network.host}:${port}/` }).catch(
        (error: unknown) =>
          check(`${overlay}: starts`, false, error instanceof Error ? error.message : error),
      );
  } finally {
    site.closeAllConnections();
    site.close();
    await network.close();
    await run("buildah", ["rm", built.container]);
  }
}

await main();
console.log(faults === 0 ? "all hold" : `${faults} do not`);
process.exitCode = faults === 0 ? 0 : 1;
