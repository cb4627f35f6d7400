import { mkdir, readdir, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import type { Engine } from "../../../../src/browser/chromium.js";
import { Page } from "../../egress/corpus/page.js";
import { findProtocol, type ProtocolDomain } from "../../../support/gateway/installed-protocol.js";
import { connectRaw } from "../../../support/gateway/raw-cdp.js";
import { type Bait, messagesOf } from "../bait.js";
import type { ClientAttempt, Never, Work } from "./attempt.js";
import { untilSaved } from "./commands.js";
import { lookForOwn } from "./internal-pages.js";

/**
 * How a domain's commands are judged: whether one reaches beyond the browser where nothing bars it, or why
 * none can.
 */
interface Judged {
  readonly succeedsPlain: true | Never;
  /** Its commands alter the whole browser, or might end it. */
  readonly isAlone?: true;
  readonly needsChromium?: true;
  readonly isQuick?: true;
  /** What lets a command that was taken have its effect. */
  after?(work: Work): Promise<unknown>;
  /** What shows that a command has done something. */
  look?(work: Work): Promise<unknown>;
}

const never = (because: string, other: Partial<Judged> = {}): Judged => ({
  succeedsPlain: { because },
  ...other,
});
const alone = { isAlone: true } as const;
const ofThePage = never(
  "it looks at and alters the document, script or worker of its session, which a sandbox holds",
);
const ofSites = never("it reads what sites have stored in this browser, by their origin");
const simulated = never("its devices are simulated");
const ofRequests = never("its requests are the page's, and Chromium opens no file: URL for one of the web");

/** Saves a download, wherever the browser has been told to put them. */
async function saves(work: Work): Promise<void> {
  const name = `${work.nonce}-saved.txt`;
  const page = await work.open();
  await page.evaluate(
    `Object.assign(document.createElement("a"), { href: URL.createObjectURL(new Blob(["mark"])), download: ${JSON.stringify(name)} }).click();`,
  );
  const places = [work.machine.directory, join(work.browser.root, "Downloads")];
  await untilSaved(
    work,
    places.map((place) => join(place, name)),
  );
}

/** A directory of the host that Chromium would load as an extension. */
const baitIn = (work: Work): string => join(work.machine.directory, "bait");
async function layBait(work: Work): Promise<void> {
  const seen = work.machine.seen(baitIn(work));
  await mkdir(seen, { recursive: true });
  await writeFile(
    join(seen, "manifest.json"),
    JSON.stringify({ manifest_version: 3, name: "bait", version: "1" }),
  );
}

async function loadsBait(work: Work): Promise<void> {
  const { result } = await work.cdp.send("Extensions.getExtensions");
  if (JSON.stringify(result ?? {}).includes(baitIn(work))) work.saw("loaded a directory of the host");
}

const baitPort = 47_113;
/** Does anybody listen there on the node? */
const opensPort = (work: Work): Promise<void> =>
  new Promise((resolve) => {
    const socket = connect({ port: baitPort, host: "127.0.0.1" }, () => {
      work.saw(`port ${baitPort} of the node was opened`);
      socket.destroy();
      resolve();
    });
    socket.once("error", () => resolve());
  });

async function tellsProcesses(work: Work): Promise<void> {
  const { result } = await work.cdp.send("SystemInfo.getProcessInfo");
  const pid = await work.browser.mainPid();
  if (((result?.["processInfo"] ?? []) as { id: number }[]).some(({ id }) => id === pid))
    work.saw("process ids of the host");
}

/** Every domain of the protocol; a test holds this against the installed engines. */
export const domains: Readonly<Record<string, Judged>> = {
  Accessibility: ofThePage,
  Ads: ofThePage,
  Animation: ofThePage,
  Audits: ofThePage,
  CSS: ofThePage,
  Console: ofThePage,
  CrashReportContext: ofThePage,
  DOMDebugger: ofThePage,
  DOMSnapshot: ofThePage,
  Debugger: ofThePage,
  EventBreakpoints: ofThePage,
  FindInPage: ofThePage,
  HeapProfiler: ofThePage,
  Inspector: ofThePage,
  LayerTree: ofThePage,
  Log: ofThePage,
  Media: ofThePage,
  Overlay: ofThePage,
  Performance: ofThePage,
  PerformanceTimeline: ofThePage,
  Profiler: ofThePage,
  Runtime: ofThePage,
  Schema: ofThePage,
  WebAudio: ofThePage,
  WebMCP: ofThePage,
  HeadlessExperimental: ofThePage,
  CacheStorage: ofSites,
  DOMStorage: ofSites,
  IndexedDB: ofSites,
  FileSystem: ofSites,
  ServiceWorker: ofSites,
  Storage: never("it reads what sites have stored in this browser, by their origin", alone),
  Autofill: simulated,
  BluetoothEmulation: simulated,
  DeviceAccess: simulated,
  DeviceOrientation: simulated,
  DigitalCredentials: simulated,
  FedCm: simulated,
  Emulation: simulated,
  SmartCardEmulation: simulated,
  WebAuthn: simulated,
  BackgroundService: ofRequests,
  Fetch: ofRequests,
  Network: ofRequests,
  Preload: ofRequests,
  Security: ofRequests,
  IO: never("it reads streams that other commands have opened, by their number"),
  Memory: never("it counts and samples the browser's own memory", alone),
  Tracing: never("the tracing service of a system is not there", alone),
  Cast: never("nobody in this network offers a receiver", alone),
  PWA: never("a launcher is made for a site with a manifest alone", alone),
  Browser: { succeedsPlain: true, ...alone, after: saves },
  DOM: { succeedsPlain: true, ...alone },
  Extensions: { succeedsPlain: true, ...alone, needsChromium: true, isQuick: true, look: loadsBait },
  Input: never(
    "a drop of files has to come in an order, which the attempt Input.dispatchDragEvent of files keeps",
    alone,
  ),
  Page: { succeedsPlain: true, ...alone, after: saves },
  SystemInfo: { succeedsPlain: true, ...alone, look: tellsProcesses },
  Target: never("what it opens is shown by attempts of its own, such as Target.createTarget of files", alone),
  Tethering: { succeedsPlain: true, ...alone, look: opensPort },
};

const protocols = new Map<Engine, Promise<readonly ProtocolDomain[]>>();
function protocolOf(engine: Engine): Promise<readonly ProtocolDomain[]> {
  const known = protocols.get(engine) ?? findProtocol(engine);
  protocols.set(engine, known);
  return known;
}

const document = `<!doctype html><body style="height:100vh" ondragover="event.preventDefault()" ondrop="event.preventDefault(); [...event.dataTransfer.files].map((file) => file.text().then((text) => document.body.append(text)))">
<input type=file multiple><script>globalThis.input = document.querySelector("input");</script>`;
const readInput = `await soon(new Promise(() => {}), 100); const shown = await Promise.all([...globalThis.input?.files ?? []].map((file) => soon(file.text().catch(String), 500))); return [...shown, document.body?.innerText];`;

/**
 * A page that commands are sent to, and the numbers of things in it, which they have to be given so that they
 * act.
 */
interface Baited {
  readonly cdp: Work["cdp"];
  readonly page: Page;
  readonly named: Bait["named"];
}

async function openBaited(work: Work, cdp: Work["cdp"]): Promise<Baited> {
  const page = await Page.open(cdp, work.serve("/baited", { body: document }));
  await page.command("DOM.enable");
  const [tree, input, frame] = await Promise.all([
    page.command("DOM.getDocument"),
    page.command("Runtime.evaluate", { expression: "globalThis.input" }),
    page.command("Page.getFrameTree"),
  ]);
  const root = (tree.result?.["root"] as { nodeId: number } | undefined)?.nodeId ?? 1;
  const found = await page.command("DOM.querySelector", { nodeId: root, selector: "input" });
  const { objectId = "" } = (input.result?.["result"] ?? {}) as { objectId?: string };
  const frameId = (frame.result?.["frameTree"] as { frame: { id: string } } | undefined)?.frame.id ?? "";
  const nodeId = Number(found.result?.["nodeId"] ?? 1);
  const named = {
    objectId,
    frameId,
    nodeId,
    x: 50,
    y: 50,
    targetId: page.target,
    port: baitPort,
    downloadPath: work.machine.directory,
    behavior: "allow",
    items: [],
    waitForDebuggerOnStart: false,
  };
  return { cdp, page, named };
}

const baited = new WeakMap<Work["browser"], Baited>();
const answerLimitMs = 700;
const orLate = <Value>(promise: Promise<Value>): Promise<Value | undefined> =>
  Promise.race([
    promise,
    new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), answerLimitMs)),
  ]);

/**
 * One page for all domains that act on pages alone, as long as it answers, on a connection that ends with the
 * browser.
 */
async function sharedBaited(work: Work): Promise<Baited> {
  const known = baited.get(work.browser);
  if (known && (await orLate(known.page.evaluate("return 1"))) === 1) return known;
  // A browser takes so many clients and no more.
  known?.cdp.socket.close();
  const made = await openBaited(work, await connectRaw(work.browser.cdpUrl));
  baited.set(work.browser, made);
  return made;
}

/** A file by its path and by its URL, a page of the browser's own, a directory of the host. */
function baitsOf(work: Work): readonly string[] {
  const [path = ""] = work.few.filter(({ what }) => what === "a file in /tmp").map((target) => target.path);
  return [path, `file://${path}`, "chrome://version/", baitIn(work)];
}
/** Methods that are not expected to take any bait get only these: a path and a URL. */
const fewBaits = 2;

/**
 * Sends every command of the domain to the browser and to a page, with each bait; gives everything that comes
 * back.
 */
async function walk(domain: string, work: Work, { isAlone }: Judged): Promise<readonly string[]> {
  const protocol = await protocolOf(work.engine);
  const { cdp, page, named } = isAlone ? await openBaited(work, work.cdp) : await sharedBaited(work);
  const heard: string[] = [];
  const onMessage = (data: Buffer): void => void heard.push(data.toString());
  cdp.socket.on("message", onMessage);
  for (const text of baitsOf(work).slice(0, isAlone ? undefined : fewBaits)) {
    const answers = messagesOf(protocol, domain, { text, named }).flatMap(({ method, params }) => [
      cdp.send(method, params, page.session),
      cdp.send(method, params),
    ]);
    await orLate(Promise.allSettled(answers));
    heard.push(
      JSON.stringify(await orLate(page.evaluate(readInput))) ?? "",
      isAlone ? await work.shown() : "",
    );
  }
  cdp.socket.off("message", onMessage);
  return heard;
}

/**
 * What lies in a directory that browsers have nothing to do with. A program without walls, of another run
 * beside this one perhaps, leaves its marks wherever it can.
 */
const foreignFiles = async ({ machine }: Work): Promise<string[]> =>
  (await readdir(machine.seen(machine.directory))).filter(
    (name) => !/^(?:plain-|extension-|pack-|bait|mark-)/.test(name),
  );

const walked = (domain: string, { after, look, ...judged }: Judged): ClientAttempt => ({
  name: `protocol: every command of ${domain}`,
  vector: "CDP",
  ...judged,
  async run(work) {
    await layBait(work);
    const before = new Set(await foreignFiles(work));
    const got = await walk(domain, work, judged);
    await after?.(work);
    // Without a wall other attempts write there at the same time, which must not make this one's control
    // succeed.
    const isTheirs = (name: string): boolean =>
      !before.has(name) && (!work.browser.isPlain || name.includes(work.nonce));
    const see = async (): Promise<boolean> => {
      if (judged.isAlone) await lookForOwn(work);
      await look?.(work);
      const written = (await foreignFiles(work)).find(isTheirs);
      if (written !== undefined) work.saw(`wrote ${written} into a directory of the host`);
      return work.hasSeen() || work.hasWords(got);
    };
    await (judged.isAlone ? work.shows(see) : see());
    return got;
  },
});

export const walks: readonly ClientAttempt[] = Object.entries(domains).map(([domain, judged]) =>
  walked(domain, judged),
);
