// Launches three browsers at once in each mode, two with policies of their own, and says what each says of itself, as a line of
// JSON a mode; first how policies reach browsers here, and "ended" when nothing is left.
// Arguments: directory of compiled sources, scratch directory.
const [compiled, scratchDirectory] = process.argv.slice(2);
const load = (path) => import(`${compiled}/${path}`);
const { systemClock } = await load("src/base/clock.js");
const { newBrowserId, onDemandHome } = await load("src/base/ids.js");
const { Cdp } = await load("src/browser/cdp.js");
const { openHost } = await load("src/browser/host.js");
const { launchChromium } = await load("src/browser/launch.js");

const log = { debug() {}, info() {}, warn() {}, error() {}, child: () => log };
const host = await openHost({ scratchDirectory, launchLimitMs: 20_000 }, { clock: systemClock, log });
const say = (what) => process.stdout.write(`${typeof what === "string" ? what : JSON.stringify(what)}\n`);

const shown = `new Promise(async (resolve) => {
  const { addWebUiListener } = await import("chrome://resources/js/cr.js");
  const names = ["HomepageLocation", "TranslateEnabled", "QuicAllowed"];
  addWebUiListener("policies-updated", (_, { policyGroups: { chrome } }) => resolve(names.map((name) => chrome.policies[name]?.value ?? null)));
  chrome.send("listenPoliciesUpdates");
}).catch(() => undefined)`;

async function policiesOf(chromium) {
  const cdp = new Cdp(chromium.pipe, systemClock);
  const { targetId } = await cdp.send("Target.createTarget", { url: "chrome://policy" });
  const { sessionId: session } = await cdp.send("Target.attachToTarget", { targetId, flatten: true });
  for (;;) {
    const { result } = await cdp.send("Runtime.evaluate", { expression: shown, awaitPromise: true, returnByValue: true }, { session });
    if (result.value) return result.value;
  }
}

async function tryMode(headless) {
  const viewport = { width: 800, height: 600 };
  const given = { engine: "chromium", headless, stealth: false, kioskMode: false, viewport, memoryBytes: 2 ** 30 };
  const policies = [{ HomepageLocation: "https://one.example/" }, { HomepageLocation: "https://two.example/", TranslateEnabled: true, QuicAllowed: true }, undefined];
  const browsers = await Promise.all(policies.map((policy) => launchChromium({ ...given, browser: newBrowserId(onDemandHome), policy }, host)));
  say(await Promise.all(browsers.map(policiesOf)));
  await Promise.all(browsers.map((chromium) => chromium.kill()));
}

say(host.policy.kind === "mount" ? `mount by ${host.policy.template.by}` : host.policy.kind);
await tryMode(true);
await tryMode(false);
await host.close();
say("ended");
