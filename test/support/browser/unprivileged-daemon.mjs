// Launches one browser of each kind, opens a file of the host in it, pings a process that translates BiDi,
// resets the browser, and says what was found as a line of JSON each. Ends them all on SIGTERM. Where a killed
// daemon has left something, it clears that instead, says "swept" and ends. Arguments: directory of compiled
// sources, scratch directory.
import { once } from "node:events";

const [compiled, scratchDirectory] = process.argv.slice(2);
const load = (path) => import(`${compiled}/${path}`);
const { systemClock } = await load("src/base/clock.js");
const { newBrowserId, onDemandPartition } = await load("src/base/ids.js");
const { Cdp } = await load("src/browser/cdp/cdp.js");
const { openHost } = await load("src/browser/host.js");
const { openLaunch } = await load("src/browser/launch.js");
const { sweepLeftovers } = await load("src/browser/sweep.js");
const { mapperProgram } = await load("src/gateway/bidi/running-mapper.js");

const launchChromium = async (...how) => await (await openLaunch(...how)).start();

const log = { debug() {}, info() {}, warn() {}, error() {}, child: () => log };
const host = await openHost({ scratchDirectory, launchLimitMs: 60_000 }, { clock: systemClock, log });

/** The failure that Chromium tells, or that there was none. */
async function openFile(chromium) {
  const cdp = new Cdp(chromium.pipe, systemClock);
  const { targetInfos } = await cdp.send("Target.getTargets", {});
  const { sessionId: session } = await cdp.send("Target.attachToTarget", {
    targetId: targetInfos[0].targetId,
    flatten: true,
  });
  const { errorText } = await cdp.send("Page.navigate", { url: "file:///etc/hostname" }, { session });
  return errorText ?? "opened";
}

/** What a mapper gives back; nothing where it cannot be started. */
async function pingMapper(chromium) {
  const script = new URL(`file://${compiled}/src/gateway/bidi/mapper-process.js`);
  const mapper = await chromium.startSidecar(mapperProgram(script, 64 * 2 ** 20));
  const ended = once(mapper, "exit");
  for (const stream of mapper.stdio) stream?.on("error", () => {});
  mapper.stdio[0].write("ping");
  const [answer] = await Promise.race([once(mapper.stdio[1], "data"), ended]);
  mapper.kill("SIGKILL");
  await ended;
  return String(answer);
}

async function tryKind(engine, headless) {
  const viewport = { width: 800, height: 600 };
  const spec = {
    browser: newBrowserId(onDemandPartition),
    engine,
    headless,
    stealth: false,
    kioskMode: false,
    viewport,
    memoryBytes: 2 ** 30,
  };
  const chromium = await launchChromium(spec, host);
  const file = await openFile(chromium);
  await chromium.resize({ width: 900, height: 700 });
  await chromium.resize(viewport);
  const mapper = await pingMapper(chromium);
  const { differences } = await chromium.reset(100_000);
  process.stdout.write(
    `${JSON.stringify({ engine, headless, isolation: chromium.isolation, file, mapper, differences })}\n`,
  );
  return chromium;
}

async function serve() {
  const browsers = [
    await tryKind("headless-shell", true),
    await tryKind("chromium", true),
    await tryKind("chromium", false),
  ];
  process.once("SIGTERM", async () => {
    await Promise.all(browsers.map((chromium) => chromium.close(5_000)));
    await host.close();
  });
  process.stdout.write("all\n");
}

const swept = await sweepLeftovers(host);
if (swept === 0) await serve();
else {
  await host.close();
  process.stdout.write("swept\n");
}
