// Launches three browsers at once in each mode, two with policies of their own, and says what each says of
// itself, as a line of JSON a mode; first how policies reach browsers here, and "ended" when nothing is left.
// Arguments: directory of compiled sources, scratch directory.
const [compiled, scratchDirectory] = process.argv.slice(2);
const load = (path) => import(`${compiled}/${path}`);
const { systemClock } = await load("src/base/clock.js");
const { newBrowserId, onDemandPartition } = await load("src/base/ids.js");
const { Cdp } = await load("src/browser/cdp/cdp.js");
const { openHost } = await load("src/browser/host.js");
const { openLaunch } = await load("src/browser/launch.js");

const launchChromium = async (...how) => await (await openLaunch(...how)).start();

const log = { debug() {}, info() {}, warn() {}, error() {}, child: () => log };
const host = await openHost({ scratchDirectory, launchLimitMs: 60_000 }, { clock: systemClock, log });
const say = (what) => process.stdout.write(`${typeof what === "string" ? what : JSON.stringify(what)}\n`);

/**
 * Whether scripts run, as the policy says: the page's own script gives it its title. It is looked at when it has
 * loaded: on a busy machine the parser rests between the text and the script after it.
 */
async function titleOf(chromium) {
  const cdp = new Cdp(chromium.pipe, systemClock);
  const { targetInfos } = await cdp.send("Target.getTargets", {});
  const { targetId } = targetInfos.find(({ type }) => type === "page");
  const { sessionId: session } = await cdp.send("Target.attachToTarget", { targetId, flatten: true });
  await cdp.send("Page.enable", {}, { session });
  await cdp.send(
    "Page.navigate",
    { url: "data:text/html,<body>shown<script>document.title = 'ran'</script>" },
    { session },
  );
  for (;;) {
    const { result } = await cdp.send(
      "Runtime.evaluate",
      { expression: "[document.readyState, document.body?.innerText, document.title]", returnByValue: true },
      { session },
    );
    const [state, text, title] = result.value ?? [];
    if (state === "complete" && text === "shown") return title;
  }
}

async function tryMode(headless) {
  const viewport = { width: 800, height: 600 };
  const given = {
    engine: "chromium",
    headless,
    stealth: false,
    kioskMode: false,
    viewport,
    memoryBytes: 2 ** 30,
  };
  const policies = [{ DefaultJavaScriptSetting: 2 }, { DefaultJavaScriptSetting: 1 }, undefined];
  const browsers = await Promise.all(
    policies.map((policy) =>
      launchChromium({ ...given, browser: newBrowserId(onDemandPartition), policy }, host),
    ),
  );
  say(await Promise.all(browsers.map(titleOf)));
  await Promise.all(browsers.map((chromium) => chromium.kill()));
}

say(host.walls.rung);
await tryMode(true);
await tryMode(false);
await host.close();
say("ended");
