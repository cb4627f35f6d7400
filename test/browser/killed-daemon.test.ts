import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { systemClock } from "../../src/base/clock.js";
import type { Chromium } from "../../src/browser/chromium.js";
import { isWorkspaceName, newWorkspaceName } from "../../src/browser/directories.js";
import type { BrowserHost } from "../../src/browser/host.js";
import { launchChromium } from "../support/browser/launch-chromium.js";
import { findScratchDirectory, scratchDirectoriesOf } from "../../src/browser/resources/scratch.js";
import { sweepEarlier, sweepLeftovers } from "../../src/browser/sweep.js";
import { isLiving, processTreeOf } from "../../src/browser/resources/processes.js";
import { nothing, takeCensus } from "../support/browser/chromium-census.js";
import { daemonScript } from "../support/browser/chromium-daemon.js";
import { launchSpec, openTestHost, silentLog } from "../support/browser/chromium-host.js";
import { newScratchDirectory } from "../support/killed-runs.js";
import { kinds } from "../support/browser/chromium-kinds.js";
import { makeStubbornTree, runModule, stubbornTreeNames } from "../support/browser/stubborn-trees.js";
import { compiled } from "../support/compiled.js";
import { withoutPrivateRoot } from "../support/browser/rungs.js";
import { until } from "../support/browser/chromium-until.js";
import { signalLiving } from "../support/living.js";

const isRoot = process.getuid?.() === 0;
const script = daemonScript("browser/daemon-of-browsers.mjs");
let neighbour: BrowserHost;
let neighbours: readonly Chromium[];
// Another daemon on the same machine, whose browsers have to live through all that follows.
beforeAll(async () => {
  neighbour = await openTestHost();
  neighbours = await Promise.all(kinds.map(([, given]) => launchChromium(launchSpec(given), neighbour)));
});
afterEach(async () => {
  for (const chromium of neighbours) {
    await chromium.probe(20_000);
    // A display that lost its socket could not be resized.
    await chromium.resize({ width: 1000, height: 700 });
  }
});
afterAll(async () => {
  const uids = new Set(neighbours.map(({ isolation }) => isolation.uid ?? -1));
  await Promise.all(neighbours.map((chromium) => chromium.kill()));
  expect(await takeCensus(neighbour.scratchDirectory, uids)).toEqual(nothing);
  await neighbour.close();
});

const ownersIn = (scratchDirectory: string): ReadonlySet<number> =>
  new Set(
    readdirSync(scratchDirectory)
      .filter(isWorkspaceName)
      .map((name) => statSync(join(scratchDirectory, name)).gid)
      .filter((uid) => uid !== 0),
  );

test.each(["preparing", "assets", "display", "spawn", "answer", "left", "all"])(
  "a daemon killed at stage %s: its processes and displays end without it, and the next start clears the rest",
  async (stage) => {
    const scratchDirectory = newScratchDirectory();
    const { child } = await script.start(scratchDirectory, stage);
    child.kill("SIGKILL");
    await once(child, "exit");
    const owners = ownersIn(scratchDirectory);
    await until(
      "no process left",
      async () => (await takeCensus(scratchDirectory, owners)).processes.length === 0,
    );
    const host = await openTestHost({ scratchDirectory });
    await sweepLeftovers(host);
    expect(await takeCensus(scratchDirectory, owners)).toEqual(nothing);
    await host.close();
  },
);

test("a browser that was stopped by a signal ends with its daemon too, every process of it", async () => {
  const scratchDirectory = newScratchDirectory();
  const { child } = await script.start(scratchDirectory, "all");
  const { processes } = await takeCensus(scratchDirectory, new Set());
  expect(processes.length).toBeGreaterThan(8);
  for (const line of processes) signalLiving(Number(line.split(" ")[0]), "SIGSTOP");
  child.kill("SIGKILL");
  await once(child, "exit");
  const owners = ownersIn(scratchDirectory);
  await until(
    "no process left",
    async () => (await takeCensus(scratchDirectory, owners)).processes.length === 0,
  );
  const host = await openTestHost({ scratchDirectory });
  await sweepLeftovers(host);
  expect(await takeCensus(scratchDirectory, owners)).toEqual(nothing);
  await host.close();
});

test.runIf(isRoot)(
  "a sweep ends processes of its own uids that no browser holds, and leaves another daemon's browsers alone",
  async () => {
    const scratchDirectory = newScratchDirectory();
    const host = await openTestHost({ scratchDirectory });
    const [held, free] = [host.uids?.take() ?? 0, host.uids?.take() ?? 0];
    host.uids?.give(free);
    mkdirSync(join(scratchDirectory, newWorkspaceName(), "profile"), { recursive: true });
    const start = (uid: number): ChildProcess =>
      spawn("/bin/sleep", ["60"], { detached: true, uid, gid: uid });
    // Its starter has ended; those of the others, this process, has not.
    const stray = Number(
      spawnSync("setpriv", [
        "--reuid",
        `${free}`,
        "--regid",
        `${free}`,
        "--clear-groups",
        "sh",
        "-c",
        "setsid sleep 60 >/dev/null 2>&1 & echo $!",
      ]).stdout.toString(),
    );
    const [living, other] = [start(held), start(free)];
    expect(await isLiving(stray)).toBe(true);
    expect(await sweepLeftovers(host)).toBe(1);
    await until("its end", async () => !(await isLiving(stray)));
    expect([living.exitCode, living.signalCode, other.exitCode, other.signalCode]).toEqual([
      null,
      null,
      null,
      null,
    ]);
    other.kill("SIGKILL");
    expect((await takeCensus(scratchDirectory, new Set())).directories).toEqual([]);
    expect(living.exitCode).toBe(null);
    living.kill("SIGKILL");
    await host.close();
  },
);

test.runIf(isRoot)(
  "without a private root a sweep removes the dead display of its daemon's uids, whichever daemon has left it, and no other's",
  async () => {
    const host = withoutPrivateRoot(await openTestHost());
    const own = host.uids?.take() ?? 0;
    mkdirSync("/tmp/.X11-unix", { recursive: true });
    const dead = { own: "/tmp/.X11-unix/X4711", foreign: "/tmp/.X11-unix/X4712" };
    // The socket of a process that was killed stays.
    const listening = (path: string): string =>
      `require("net").createServer().listen("${path}", () => process.kill(process.pid, "SIGKILL"))`;
    for (const path of Object.values(dead)) spawnSync(process.execPath, ["-e", listening(path)]);
    chownSync(dead.own, own, own);
    await sweepLeftovers(host);
    expect([existsSync(dead.own), existsSync(dead.foreign)]).toEqual([false, true]);
    rmSync(dead.foreign);
    await host.close();
  },
);

test.each(stubbornTreeNames)("%s: a sweep removes what holds it", async (tree) => {
  const host = await openTestHost();
  const root = join(host.scratchDirectory, newWorkspaceName());
  mkdirSync(root);
  makeStubbornTree(tree, root);
  expect(await sweepLeftovers(host)).toBe(1);
  expect((await takeCensus(host.scratchDirectory, new Set())).directories).toEqual([]);
  await host.close();
});

test.runIf(isRoot)(
  "a directory that cannot be removed keeps no daemon from starting, is closed to browsers and stays for the next",
  () => {
    const uid = 64_323;
    const scratchDirectory = newScratchDirectory();
    const root = join(scratchDirectory, newWorkspaceName());
    // An ordinary user's daemon cannot remove what root has put there.
    mkdirSync(join(root, "of-root", "held"), { recursive: true });
    for (const path of [scratchDirectory, root]) chownSync(path, uid, uid);
    chmodSync(root, 0o1770);
    const module = (path: string): string => pathToFileURL(join(compiled, path)).href;
    const sweep = `
      const { systemClock: clock } = await import("${module("src/base/clock.js")}");
      const { openHost } = await import("${module("src/browser/host.js")}");
      const { sweepLeftovers } = await import("${module("src/browser/sweep.js")}");
      const warn = ({ path }, text) => path && console.log(text, path);
      const log = { debug() {}, info() {}, warn, error() {}, child: () => log };
      const host = await openHost({ scratchDirectory: "${scratchDirectory}", launchLimitMs: 60_000 }, { clock, log });
      console.log(await sweepLeftovers(host));
      await host.close().catch((error) => console.log(error.errors[0].cause.message));`;
    const warning = "the directory of a leftover browser could not be removed yet";
    expect(runModule(sweep, "/", uid).trim().split("\n")).toEqual([
      `${warning} ${root}`,
      "1",
      "1 browsers could not be ended",
    ]);
    expect(statSync(root).mode & 0o7777).toBe(0o700);
    rmSync(join(root, "of-root"), { recursive: true });
    expect(runModule(sweep, "/", uid).trim()).toBe("1");
    expect(existsSync(scratchDirectory)).toBe(false);
  },
);

test("a sweep of a clean directory finds nothing", async () => {
  const host = await openTestHost();
  expect(await sweepLeftovers(host)).toBe(0);
  await host.close();
});

test.runIf(process.platform === "linux")(
  "where a daemon gives no uids, a sweep ends the namespace that outlived its daemon, and no other's",
  async () => {
    const { uids, ...host } = await openTestHost();
    const foreign = newScratchDirectory();
    const start = (scratch: string): ChildProcess => {
      const root = join(scratch, newWorkspaceName());
      mkdirSync(root);
      // Starts one without --die-with-parent, like one whose daemon was killed before it could ask for that.
      return spawn("bwrap", [
        "--ro-bind",
        "/",
        "/",
        "--bind",
        root,
        "/mnt",
        "--unshare-pid",
        "--",
        "/bin/sleep",
        "60",
      ]);
    };
    const [left, other] = [start(host.scratchDirectory), start(foreign)];
    await until(
      "both started",
      async () =>
        (await processTreeOf(left.pid ?? 0)).length + (await processTreeOf(other.pid ?? 0)).length >= 4,
    );
    const tree = await processTreeOf(left.pid ?? 0);
    const ended = once(left, "exit");
    await sweepLeftovers(host);
    await ended;
    await until("its namespace has ended", async () =>
      (await Promise.all(tree.map(isLiving))).every((isAlive) => !isAlive),
    );
    expect(other.exitCode).toBe(null);
    for (const pid of await processTreeOf(other.pid ?? 0)) signalLiving(pid, "SIGKILL");
    rmSync(foreign, { recursive: true });
    await Promise.all([uids?.close(), host.close()]);
  },
);

test("what a killed daemon left in either place of its data directory goes before the next one chooses", async () => {
  const paths = await scratchDirectoriesOf(`/nowhere/${process.pid}`);
  expect(paths).toContain(await findScratchDirectory(`/nowhere/${process.pid}`));
  for (const path of paths) mkdirSync(join(path, newWorkspaceName(), "profile"), { recursive: true });
  const mount = join(paths[0] ?? "", newWorkspaceName());
  mkdirSync(mount);
  if (isRoot) expect(spawnSync("mount", ["-t", "tmpfs", "-o", "size=1m", "remuda", mount]).status).toBe(0);
  await sweepEarlier(paths, { clock: systemClock, log: silentLog });
  expect(paths.filter((path) => existsSync(path))).toEqual([]);
});
