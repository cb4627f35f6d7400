// A daemon cut down to its browsers, for tests that kill it. Arguments: directory of compiled sources,
// scratch directory. Says each stage of its launches and then "all", one line each.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

const [compiled, scratchDirectory] = process.argv.slice(2);
const load = (path) => import(`${compiled}/${path}`);
const { systemClock } = await load("src/base/clock.js");
const { newBrowserId, onDemandPartition } = await load("src/base/ids.js");
const { openHost } = await load("src/browser/host.js");
const { openLaunch } = await load("src/browser/launch.js");

/** As a node does: the directories are made, filled, and the browser is started in them. */
async function launchChromium({ fillWorkspace, ...spec }, ...rest) {
  const launch = await openLaunch(spec, ...rest);
  return await launch.start(fillWorkspace?.(launch.room));
}

const say = (line) => process.stdout.write(`${line}\n`);
const log = { debug() {}, info() {}, warn() {}, error() {}, child: () => log };
const host = await openHost({ scratchDirectory, launchLimitMs: 60_000 }, { clock: systemClock, log });
const spec = (engine, headless) => ({
  browser: newBrowserId(onDemandPartition),
  engine,
  headless,
  stealth: false,
  kioskMode: false,
  viewport: { width: 800, height: 600 },
  memoryBytes: 2 ** 30,
});
const onStage = (stage) => say(stage);
const fillWorkspace = async ({ directories }) => {
  for (let file = 0; file < 200; file += 1)
    await writeFile(join(directories.profile, `${file}`), "x".repeat(10_000));
  return [];
};
const launchAndLeave = async () => {
  await (await launchChromium(spec("headless-shell", true), host)).stopAndKeep(60_000);
  say("left");
};
await Promise.all([
  launchAndLeave(),
  launchChromium(spec("headless-shell", true), host, { onStage }),
  launchChromium({ ...spec("chromium", true), fillWorkspace }, host, { onStage }),
  launchChromium(spec("chromium", false), host, { onStage }),
]);
say("all");
