import { systemClock } from "../../../../src/base/clock.js";
import { within } from "../../../../src/base/deadline.js";
import type { ClientAttempt, Work } from "./attempt.js";

export interface Extension {
  readonly permissions: readonly string[];
  /**
   * Its service worker's work; `files` are the URLs of all files, `say` tells something, what it returns is
   * told too.
   */
  readonly worker: string;
  readonly files?: Readonly<Record<string, string>>;
  readonly manifest?: object;
}

/**
 * Each step of a worker has an event that ends it, where it is refused too: only what has gone wrong takes so
 * long.
 */
const stepLimitMs = 20_000;

/**
 * The worker's answer comes to the allowed site as a request, since nothing else of it can be seen by a
 * holder.
 */
const workerOf = (work: Work, code: string): string => `
const files = ${JSON.stringify(work.targets.map(({ path }) => `file://${path}`))};
const say = (text) => fetch(${JSON.stringify(`${work.site.origin}/${work.nonce}/said`)}, { method: "POST", mode: "no-cors", body: JSON.stringify(text ?? null) }).catch(() => {});
const few = ${JSON.stringify(work.few.map(({ path }) => `file://${path}`))};
const soon = (promise) => Promise.race([promise, new Promise((resolve) => setTimeout(resolve, ${stepLimitMs}))]);
// Looks at each of the events, and once before them.
const once = (events, holds) => soon(new Promise((resolve) => {
  const look = () => void holds().then((is) => is && resolve(), resolve);
  for (const event of events) event.addListener(look);
  look(); }));
const opened = async (url) => { const { id } = await chrome.tabs.create({ url });
  await once([chrome.tabs.onUpdated, chrome.tabs.onRemoved], async () => (await chrome.tabs.get(id)).status === "complete");
  return { id }; };
const eachIn = async (work) => { const got = []; for (const url of few) got.push(await soon((async () => work(await opened(url)))().catch(String))); return got; };
(async () => { ${code} })().catch(String).then(say).finally(() => fetch(${JSON.stringify(`${work.site.origin}/${work.nonce}/done`)}).catch(() => {}));`;

const manifestOf = (work: Work, { permissions, manifest = {} }: Extension): string =>
  JSON.stringify({
    manifest_version: 3,
    name: work.nonce,
    version: "1",
    permissions,
    host_permissions: ["<all_urls>", "file:///*"],
    background: { service_worker: "worker.js" },
    ...manifest,
  });

export const filesOf = (work: Work, extension: Extension): Record<string, string> => ({
  "manifest.json": manifestOf(work, extension),
  "worker.js": workerOf(work, extension.worker),
  ...named(work, extension.files),
});

/** `FILES` in a script of its pages stands for the URLs of all files. */
const named = ({ targets }: Work, files: Extension["files"] = {}): Record<string, string> => {
  const urls = JSON.stringify(targets.map(({ path }) => `file://${path}`));
  return Object.fromEntries(
    Object.entries(files).map(([name, text]) => [name, text.replaceAll("FILES", urls)]),
  );
};

/** A worker says that it is done where all was refused too. */
const doneLimitMs = 60_000;

/** Gives the browser the extension, waits until it has done its part, and gives what it said. */
export async function tryIt(work: Work, files: Readonly<Record<string, string | Buffer>>): Promise<unknown> {
  if (!(await work.browser.extend(files))) return "refused";
  const limit = { what: "the extension's last word", limitMs: doneLimitMs };
  await within(systemClock, limit, work.site.heard(`/${work.nonce}/done`)).catch(() => {});
  return work.site.said(`/${work.nonce}/said`);
}

/** An attempt of an extension with these permissions. */
export const extension = (
  name: string,
  made: Extension | ((work: Work) => Extension),
  other: Partial<ClientAttempt> & { after?(work: Work): Promise<unknown> } = {},
): ClientAttempt => ({
  name: `extension: ${name}`,
  vector: "extension",
  needsChromium: true,
  isAlone: other.isQuick === true ? "extensions" : true,
  succeedsPlain: true,
  ...other,
  async run(work) {
    const said = await tryIt(work, filesOf(work, typeof made === "function" ? made(work) : made));
    return [said, await other.after?.(work)];
  },
});
