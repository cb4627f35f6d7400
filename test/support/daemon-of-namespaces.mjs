// A daemon cut down to its network namespaces. Arguments: directory of compiled sources, scratch directory.
// With a scratch directory it puts a browser into a namespace, says the namespace's name and then "ready". Given a word
// instead it does that: "examine" says what findNamespaces finds, "strand" is refused the way home.
import { readlinkSync } from "node:fs";
import { createServer } from "node:net";

const [compiled, what] = process.argv.slice(2);
const load = (path) => import(`${compiled}/${path}`);
const { systemClock } = await load("src/base/clock.js");
const { newBrowserId, onDemandHome } = await load("src/base/ids.js");
const { findTool } = await load("src/browser/executable.js");
const { openHost } = await load("src/browser/host.js");
const { launchChromium } = await load("src/browser/launch.js");
const { loadLibc } = await load("src/egress/libc.js");
const { findNamespaces, makeNamespace } = await load("src/egress/namespace.js");

const say = (line) => process.stdout.write(`${line}\n`);
const log = { debug() {}, info() {}, warn() {}, error() {}, child: () => log };
const tools = { nsenter: await findTool("nsenter"), ip: await findTool("ip") };

async function examine() {
  const { kind, why } = await findNamespaces({ tools, log });
  say(JSON.stringify({ kind, why }));
  say("ready");
}

async function strand() {
  const libc = await loadLibc();
  say("ready");
  makeNamespace({ ...libc, enterNetwork() { throw new Error("no way home"); } });
  say("alive");
}

async function launchWithin(scratchDirectory) {
  const { openNamespace } = await findNamespaces({ tools, log });
  const listener = await openNamespace();
  await listener.listen(createServer((socket) => socket.destroy()));
  const host = await openHost({ scratchDirectory, launchLimitMs: 20_000 }, { clock: systemClock, log });
  const spec = {
    browser: newBrowserId(onDemandHome), engine: "chromium", headless: true, stealth: false, kioskMode: false,
    viewport: { width: 800, height: 600 }, memoryBytes: 2 ** 30, egress: { proxyUrl: listener.proxyUrl, namespace: listener.namespace },
  };
  const { pid } = await launchChromium(spec, host);
  say(readlinkSync(listener.namespace));
  say(readlinkSync(`/proc/${pid}/ns/net`));
  say("ready");
}

const acts = { examine, strand };
await (acts[what] ?? launchWithin)(what);
