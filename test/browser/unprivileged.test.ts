import { once } from "node:events";
import { chownSync } from "node:fs";
import { expect, test } from "vitest";
import { nothing, takeCensus } from "../support/browser/chromium-census.js";
import { daemonScript } from "../support/browser/chromium-daemon.js";
import { newScratchDirectory } from "../support/killed-runs.js";
import { until } from "../support/browser/chromium-until.js";

const isRoot = process.getuid?.() === 0;
/** Nobody else's, so that what it leaves can be told apart. */
const uid = isRoot ? 64_321 : undefined;
const owners = new Set([uid ?? process.getuid?.() ?? 0]);

const script = daemonScript("browser/unprivileged-daemon.mjs");

/** A scratch directory that belongs to the daemon's user. */
function scratchOfUser(): string {
  const path = newScratchDirectory();
  if (uid !== undefined) chownSync(path, uid, uid);
  return path;
}

test("without root, browsers launch in their sandbox, files are closed by policy where there is one, and nothing stays", async () => {
  const scratchDirectory = scratchOfUser();
  const { child, said } = await script.start(scratchDirectory, "all", uid);
  const found = said.slice(0, -1).map((line) => JSON.parse(line) as object);
  const limits = { memory: "watch", tasks: "rlimit", cpu: "none", busy: "none", scratch: "watch" };
  const isolation = {
    rung: "user-namespace",
    files: "own",
    tenants: "many",
    sandbox: "namespace",
    uid: null,
    limits,
    network: "none",
  };
  const file = "net::ERR_BLOCKED_BY_ADMINISTRATOR";
  expect(found).toEqual([
    // headless-shell knows no policy, and its root has no such file.
    {
      engine: "headless-shell",
      headless: true,
      isolation,
      file: "net::ERR_FILE_NOT_FOUND",
      mapper: "ping",
      differences: [],
    },
    { engine: "chromium", headless: true, isolation, file, mapper: "ping", differences: [] },
    { engine: "chromium", headless: false, isolation, file, mapper: "ping", differences: [] },
  ]);
  child.kill("SIGTERM");
  expect(await once(child, "exit")).toEqual([0, null]);
  expect(await takeCensus(scratchDirectory, owners)).toEqual(nothing);
});

test("without root, a killed daemon's processes end without it, and the next start clears the rest", async () => {
  const scratchDirectory = scratchOfUser();
  const { child } = await script.start(scratchDirectory, "all", uid);
  expect((await takeCensus(scratchDirectory, owners)).processes.length).toBeGreaterThan(2);
  child.kill("SIGKILL");
  await once(child, "exit");
  await until(
    "no process left",
    async () => (await takeCensus(scratchDirectory, owners)).processes.length === 0,
  );
  const sweeper = await script.start(scratchDirectory, "swept", uid);
  expect(await once(sweeper.child, "exit")).toEqual([0, null]);
  expect(await takeCensus(scratchDirectory, owners)).toEqual(nothing);
});
