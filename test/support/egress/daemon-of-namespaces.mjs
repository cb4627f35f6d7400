// A daemon cut down to its network namespaces. Arguments: directory of compiled sources, scratch directory.
// With a scratch directory it puts a browser into a namespace, says the namespace's name and then "ready".
// Given a word instead it does that: "examine" says what findNamespaces finds, "own" looks around in a
// namespace, "hold" says the names of one and of the process that makes them, and stays.
import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFileSync, readlinkSync } from "node:fs";
import { createServer } from "node:net";
import { promisify } from "node:util";

const [compiled, what] = process.argv.slice(2);
const load = (path) => import(`${compiled}/${path}`);
const { systemClock } = await load("src/base/clock.js");
const { newBrowserId, onDemandPartition } = await load("src/base/ids.js");
const { findTool } = await load("src/browser/executable.js");
const { openHost } = await load("src/browser/host.js");
const { openLaunch } = await load("src/browser/launch.js");
const { findNamespaces } = await load("src/egress/namespace/namespace.js");

const launchChromium = async (...how) => await (await openLaunch(...how)).start();

const say = (line) => process.stdout.write(`${line}\n`);
const log = { debug() {}, info() {}, warn() {}, error() {}, child: () => log };
const tools = { nsenter: await findTool("nsenter"), unshare: await findTool("unshare") };
const parts = { tools, clock: systemClock, log, spare: 1 };
const run = promisify(execFile);

async function examine() {
  const { kind, why } = await findNamespaces(parts);
  say(JSON.stringify({ kind, why }));
  say("ready");
}

/** Enters as nsenter(1) does for a browser. */
const within = ({ namespace, userNamespace }, ...command) =>
  run(tools.nsenter, [
    `--user=${userNamespace}`,
    "--preserve-credentials",
    `--net=${namespace}`,
    "--",
    ...command,
  ]);
const connectAndHear =
  "const s=require('net').connect(+process.argv[1],'127.0.0.1');s.on('data',d=>console.log(''+d));s.on('error',e=>console.log(e.code))";

async function own() {
  const { openNamespace } = await findNamespaces(parts);
  const listener = await openNamespace();
  const greet = () => createServer((socket) => socket.end("greeting"));
  await listener.listen(greet());
  const outside = greet().listen(0, "127.0.0.1");
  await once(outside, "listening");
  const hears = async (port) =>
    (await within(listener, process.execPath, "-e", connectAndHear, `${port}`)).stdout.trim();
  const { stdout } = await within(listener, await findTool("ip"), "-o", "address");
  const found = {
    heard: await hears(3128),
    host: await hears(outside.address().port),
    isOther: readlinkSync(listener.namespace) !== readlinkSync("/proc/self/ns/net"),
    hasUser: readlinkSync(listener.userNamespace) !== readlinkSync("/proc/self/ns/user"),
    addresses: stdout
      .trim()
      .split("\n")
      .map((line) => line.split(/\s+/).slice(1, 4).join(" "))
      .toSorted(),
  };
  say(JSON.stringify(found));
  say("ready");
}

async function hold() {
  const { openNamespace } = await findNamespaces(parts);
  const { namespace } = await openNamespace();
  say(readlinkSync(namespace));
  say(readFileSync(`/proc/self/task/${process.pid}/children`, "utf8").trim());
  say("ready");
  setInterval(() => {}, 60_000);
}

async function launchWithin(scratchDirectory) {
  const { openNamespace } = await findNamespaces(parts);
  const listener = await openNamespace();
  await listener.listen(createServer((socket) => socket.destroy()));
  const host = await openHost({ scratchDirectory, launchLimitMs: 60_000 }, { clock: systemClock, log });
  const spec = {
    browser: newBrowserId(onDemandPartition),
    engine: "chromium",
    headless: true,
    stealth: false,
    kioskMode: false,
    viewport: { width: 800, height: 600 },
    memoryBytes: 2 ** 30,
    egress: {
      proxyUrl: listener.proxyUrl,
      namespace: listener.namespace,
      ...(listener.userNamespace !== undefined && { userNamespace: listener.userNamespace }),
    },
  };
  const { pid } = await launchChromium(spec, host);
  say(readlinkSync(listener.namespace));
  say(readlinkSync(`/proc/${pid}/ns/net`));
  say("ready");
}

const acts = { examine, own, hold };
await (acts[what] ?? launchWithin)(what);
