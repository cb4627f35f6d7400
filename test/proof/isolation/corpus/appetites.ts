import { existsSync } from "node:fs";
import { join } from "node:path";
import { until } from "../../../support/browser/chromium-until.js";
import { intrude } from "../intrude.js";
import { factOf, processesOf, withDescendants } from "../programs.js";
import type { Attempt, Work } from "./attempt.js";

/** More than the 1 GiB of its class, by far. */
const muchMebibytes = 2560;
/** Beyond the 256 MiB that the proof's daemons let a browser store. */
const storedMebibytes = 400;
/** Where a limit is watched and not held by the kernel, what has too much is ended by then. */
const watchLimitMs = 8000;

const kilobytesOf = async (pid: number): Promise<number> =>
  Number(/^RssAnon:\s+(\d+) kB/m.exec(await factOf(pid, "status"))?.[1] ?? 0);
async function mebibytesOf({ browser }: Work): Promise<number> {
  const all = await Promise.all((await withDescendants(await processesOf(browser.root))).map(kilobytesOf));
  return all.reduce((total, each) => total + each, 0) / 1024;
}

/** Uses three pages, since one alone may come to a limit of its own. */
async function takeMemory(work: Work): Promise<void> {
  const pages = await Promise.all([1, 2, 3].map(() => work.open()));
  const script = `globalThis.held = []; for (let each = 0; each < 64; each += 1) held.push(new Uint8Array(2 ** 24).fill(1));`;
  for (const page of pages) void page.evaluate(script);
  const isMuch = async (): Promise<boolean> => (await mebibytesOf(work)) > muchMebibytes;
  await until("so much memory", isMuch, 2 * watchLimitMs).catch(() => {});
  const isLess = async (): Promise<boolean> => !(await isMuch());
  await until("less memory", isLess, watchLimitMs).catch(() =>
    work.saw(`its pages hold more than ${muchMebibytes} MiB, and nobody ends that`),
  );
}

async function storeMuch(work: Work): Promise<void> {
  const [place] = await work.browser.places();
  if (place === undefined) return;
  const into = `${work.browser.root}/Downloads`;
  await intrude(place, ["much_disk"], { into, nonce: work.nonce, bound: storedMebibytes, seconds: 20 }).catch(
    () => {},
  );
  const isGone = (): boolean => !existsSync(work.machine.seen(join(into, `fill-${work.nonce}`)));
  await until("what it stored to go", isGone, watchLimitMs).catch(() =>
    work.saw(`it stores ${storedMebibytes} MiB, and nobody ends that`),
  );
}

/**
 * Reads of the machine's files and writes of its own are held by no bound, only by their storage
 * (docs/isolation.md, Limits).
 */
const ioUnbounded =
  "no rung bounds how fast one browser reads and writes; docs/isolation.md, Limits, says what is left";
/** Far more than a page writes, and less than a limit to storage or memory would end. */
const ioMebibytes = 128;

/** Each takes what it can get, up to a bound; a browser of its own, for little may be left of it. */
export const appetites: readonly Attempt[] = [
  {
    name: "1500 processes at once",
    vector: "process",
    script: "many_processes",
    bound: 1500,
    isAlone: true,
    isQuick: true,
    succeedsPlain: true,
  },
  {
    name: `disk I/O: ${ioMebibytes} MiB written as fast as that goes`,
    vector: "process",
    script: "much_io",
    bound: ioMebibytes,
    isAlone: true,
    succeedsPlain: true,
    isAdmitted: ioUnbounded,
  },
  {
    name: "memory: 2.5 GiB in pages of a browser of 1 GiB",
    vector: "page",
    needsHeadless: true,
    isAlone: true,
    endsBrowser: true,
    succeedsPlain: true,
    run: takeMemory,
  },
  {
    name: "storage: 400 MiB in a browser of 256 MiB",
    vector: "outside",
    isAlone: true,
    endsBrowser: true,
    succeedsPlain: true,
    run: storeMuch,
  },
];
