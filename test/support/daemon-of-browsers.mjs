// A daemon cut down to its browsers, for tests that kill it. Arguments: directory of compiled sources, scratch directory.
// Says each stage of its launches and then "all", one line each.
const [compiled, scratchDirectory] = process.argv.slice(2);
const load = (path) => import(`${compiled}/${path}`);
const { systemClock } = await load("src/base/clock.js");
const { newBrowserId, onDemandHome } = await load("src/base/ids.js");
const { openHost } = await load("src/browser/host.js");
const { launchChromium } = await load("src/browser/launch.js");

const say = (line) => process.stdout.write(`${line}\n`);
const log = { debug() {}, info() {}, warn() {}, error() {}, child: () => log };
const host = await openHost({ scratchDirectory, launchLimitMs: 20_000 }, { clock: systemClock, log });
const spec = (engine, headless) => ({
  browser: newBrowserId(onDemandHome), engine, headless, stealth: false, kioskMode: false,
  viewport: { width: 800, height: 600 }, memoryBytes: 2 ** 30,
});
const onStage = (stage) => say(stage);
await Promise.all([
  launchChromium(spec("headless-shell", true), host, { onStage }),
  launchChromium(spec("chromium", true), host, { onStage }),
  launchChromium(spec("chromium", false), host, { onStage }),
]);
say("all");
