import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chownSync, existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { newBrowserId, onDemandHome } from "../../src/base/ids.js";
import type { Chromium } from "../../src/browser/chromium.js";
import type { Host } from "../../src/browser/host.js";
import { launchChromium } from "../../src/browser/launch.js";
import { sweepLeftovers } from "../../src/browser/sweep.js";
import { nothing, takeCensus } from "../support/chromium-census.js";
import { type DaemonScript, prepareDaemon } from "../support/chromium-daemon.js";
import { launchSpec, newScratchDirectory, openTestHost } from "../support/chromium-host.js";
import { kinds } from "../support/chromium-kinds.js";
import { until } from "../support/chromium-until.js";

let script: DaemonScript;
let neighbour: Host;
let neighbours: readonly Chromium[];
// Another daemon on the same machine, whose browsers have to live through all that follows.
beforeAll(async () => {
  [script, neighbour] = await Promise.all([prepareDaemon("daemon-of-browsers.mjs"), openTestHost()]);
  neighbours = await Promise.all(kinds.map(([, given]) => launchChromium(launchSpec(given), neighbour)));
});
afterEach(async () => {
  for (const chromium of neighbours) {
    await chromium.probe(2_000);
    // A display that lost its socket could not be resized.
    await chromium.resize({ width: 1000, height: 700 });
  }
});
afterAll(async () => {
  const uids = new Set(neighbours.map(({ isolation }) => isolation.uid ?? -1));
  await Promise.all(neighbours.map((chromium) => chromium.kill()));
  expect(await takeCensus(neighbour.scratchDirectory, uids)).toEqual(nothing);
  await Promise.all([neighbour.close(), script.remove()]);
});

const ownersIn = (scratchDirectory: string): ReadonlySet<number> =>
  new Set(readdirSync(scratchDirectory).map((name) => statSync(join(scratchDirectory, name)).gid).filter((uid) => uid !== 0));

test.each(["preparing", "furnishing", "display", "spawn", "answer", "left", "all"])(
  "a daemon killed at stage %s: its processes and displays end without it, and the next start clears the rest",
  async (stage) => {
    const scratchDirectory = newScratchDirectory();
    const { child } = await script.start(scratchDirectory, stage);
    child.kill("SIGKILL");
    await once(child, "exit");
    const owners = ownersIn(scratchDirectory);
    await until("no process left", async () => (await takeCensus(scratchDirectory, owners)).processes.length === 0);
    const host = await openTestHost({ scratchDirectory });
    await sweepLeftovers(host);
    expect(await takeCensus(scratchDirectory, owners)).toEqual(nothing);
    await host.close();
  },
);

test("a browser that was stopped by a signal ends with its daemon too", async () => {
  const scratchDirectory = newScratchDirectory();
  const { child } = await script.start(scratchDirectory, "all");
  const { processes } = await takeCensus(scratchDirectory, new Set());
  for (const line of processes) process.kill(Number(line.split(" ")[0]), "SIGSTOP");
  child.kill("SIGKILL");
  await once(child, "exit");
  const owners = ownersIn(scratchDirectory);
  const host = await openTestHost({ scratchDirectory });
  const mains = processes.filter((line) => line.includes("--remote-debugging-pipe") && !line.includes("--type="));
  await until("no main process left", async () => {
    const left = await takeCensus(scratchDirectory, owners);
    return mains.every((line) => !left.processes.includes(line));
  });
  await sweepLeftovers(host);
  expect(await takeCensus(scratchDirectory, owners)).toEqual(nothing);
  await host.close();
});

test("a sweep ends processes that outlived their daemon, and leaves another daemon's browsers alone", async () => {
  const scratchDirectory = newScratchDirectory();
  const root = join(scratchDirectory, newBrowserId(onDemandHome));
  mkdirSync(join(root, "profile"), { recursive: true });
  const outlived = spawn("/bin/sleep", ["60"], { detached: true, env: { HOME: root } });
  writeFileSync(join(root, "profile", "held"), "");
  const uid = neighbours.at(-1)?.isolation.uid;
  // As though the neighbour had been given the uid of a browser that a killed daemon has left.
  if (uid !== null && uid !== undefined) chownSync(root, uid, uid);
  const host = await openTestHost({ scratchDirectory });
  const ended = once(outlived, "exit");
  expect(await sweepLeftovers(host)).toHaveLength(1);
  expect(await ended).toEqual([null, "SIGKILL"]);
  expect((await takeCensus(scratchDirectory, new Set())).directories).toEqual([]);
  await host.close();
});

test.runIf(process.getuid?.() === 0)("a sweep removes a dead display of its daemon's uids, whichever daemon has left it, and no other's", async () => {
  const host = await openTestHost();
  const own = host.uids?.take() ?? 0;
  const dead = { own: "/tmp/.X11-unix/X4711", foreign: "/tmp/.X11-unix/X4712" };
  // The socket of a process that was killed stays.
  const listening = (path: string): string => `require("net").createServer().listen("${path}", () => process.kill(process.pid, "SIGKILL"))`;
  for (const path of Object.values(dead)) spawnSync(process.execPath, ["-e", listening(path)]);
  chownSync(dead.own, own, own);
  await sweepLeftovers(host);
  expect([existsSync(dead.own), existsSync(dead.foreign)]).toEqual([false, true]);
  rmSync(dead.foreign);
  await host.close();
});

test("a sweep of a clean directory finds nothing", async () => {
  const host = await openTestHost();
  expect(await sweepLeftovers(host)).toEqual([]);
  await host.close();
});
