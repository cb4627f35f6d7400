import { existsSync } from "node:fs";
import { join } from "node:path";
import { until } from "../../../support/browser/chromium-until.js";
import { intrude } from "../intrude.js";
import { factOf, pidsNow, processesOf, withDescendants } from "../programs.js";
import type { Attempt, ClientAttempt, Work } from "./attempt.js";

/** More than the 1 GiB of its class, by far. */
const muchMebibytes = 2560;
/** Beyond the 256 MiB that the proof's daemons let a browser store. */
const storedMebibytes = 400;
/** Where a limit is watched and not held by the kernel, what has too much is ended by then. */
const watchLimitMs = 8000;
/** A busy machine hands out tens of MiB a second: pages are waited for as long as they get any. */
const takingLimitMs = 180_000;

/** Shared memory too, once for each that maps it. */
const kilobytesOf = async (pid: number): Promise<number> =>
  [...(await factOf(pid, "status")).matchAll(/^Rss(?:Anon|Shmem):\s+(\d+) kB/gm)].reduce(
    (total, [, kilobytes]) => total + Number(kilobytes),
    0,
  );
async function mebibytesOf({ browser }: Work): Promise<number> {
  const all = await Promise.all((await withDescendants(await processesOf(browser.root))).map(kilobytesOf));
  return all.reduce((total, each) => total + each, 0) / 1024;
}

const arrays = `for (let each = 0; each < 64; each += 1) held.push(new Uint8Array(2 ** 24).fill(1));`;
/**
 * What several threads or processes see: memory of WebAssembly, its SharedArrayBuffers, canvases and blobs.
 */
const sharedThings = `for (let each = 0; each < 16; each += 1) {
  const { buffer } = new WebAssembly.Memory({ initial: 512, maximum: 512, shared: true });
  new Uint8Array(buffer).fill(1);
  const canvas = new OffscreenCanvas(4096, 2048);
  canvas.getContext("2d").fillRect(0, 0, 4096, 2048);
  held.push(buffer, canvas.transferToImageBitmap(), new Blob([new Uint8Array(2 ** 24).fill(each)]));
}`;

/** Waits until it has as much as is too much, or gets no more. */
async function untilTaken(work: Work): Promise<void> {
  let most = 0;
  let grewAt = performance.now();
  const isOver = async (): Promise<boolean> => {
    const has = await mebibytesOf(work);
    // A page that does nothing more has a little less or more from look to look.
    if (has > most + 1) [most, grewAt] = [has, performance.now()];
    return has > muchMebibytes || performance.now() - grewAt > 2 * watchLimitMs;
  };
  await until("its pages to take what they get", isOver, takingLimitMs);
}

/** Uses three pages, since one alone may come to a limit of its own. */
const takeMemory =
  (taking: string) =>
  async (work: Work): Promise<void> => {
    const pages = await Promise.all([1, 2, 3].map(() => work.open()));
    const script = `globalThis.held = []; ${taking}`;
    for (const page of pages) void page.evaluate(script);
    await untilTaken(work);
    const isLess = async (): Promise<boolean> => (await mebibytesOf(work)) <= muchMebibytes;
    await until("less memory", isLess, watchLimitMs).catch(() =>
      work.saw(`its pages hold more than ${muchMebibytes} MiB, and nobody ends that`),
    );
  };

/** More than its class too, by one program that goes on; so much at most, on a machine that others use. */
const hiddenMebibytes = 1280;

/** Whether the program of that name is there, wherever it runs. */
async function isThere(name: string): Promise<boolean> {
  const names = await Promise.all((await pidsNow()).map((pid) => factOf(pid, "cmdline")));
  return names.some((each) => each.startsWith(name));
}

/** A hostile program in the place of the browser holds memory that no process maps. */
const hideMemory =
  (script: string) =>
  async (work: Work): Promise<void> => {
    const [place] = await work.browser.places();
    if (place === undefined) return;
    const { nonce } = work;
    const told = { own: work.browser.root, nonce, bound: hiddenMebibytes, seconds: 60 };
    await intrude(place, [script], told);
    // It says when it has all, or, in a cgroup, that its writes fail; it may have been ended before.
    const isWriting = async (): Promise<boolean> =>
      (await isThere(`hog-${nonce}`)) && !(await isThere(`hog-${nonce}-`));
    await until("the program to have it all", async () => !(await isWriting()), 4 * watchLimitMs);
    const isGone = async (): Promise<boolean> => !(await isThere(`hog-${nonce}-full`));
    await until("the program to go", isGone, 2 * watchLimitMs).catch(() =>
      work.saw(`a program of it holds ${hiddenMebibytes} MiB, and nobody ends that`),
    );
  };

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

const hidden = (where: string, script: string, other: Partial<ClientAttempt>): ClientAttempt => ({
  name: `memory: ${hiddenMebibytes} MiB that nobody maps, ${where}, in a browser of 1 GiB`,
  vector: "outside",
  needsHeadless: true,
  isAlone: true,
  endsBrowser: true,
  succeedsPlain: true,
  ...other,
  run: hideMemory(script),
});

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
    run: takeMemory(arrays),
  },
  {
    name: "memory: 2.5 GiB that threads and processes share, in pages of a browser of 1 GiB",
    vector: "page",
    needsHeadless: true,
    isAlone: true,
    endsBrowser: true,
    succeedsPlain: true,
    run: takeMemory(sharedThings),
  },
  hidden("in files without a name", "unmapped_memory", {}),
  hidden("in a file system that it mounts", "mounted_memory", {}),
  hidden("in a file system without a bound that it mounts", "unbounded_mount", {}),
  {
    name: "storage: 400 MiB in a browser of 256 MiB",
    vector: "outside",
    isAlone: true,
    endsBrowser: true,
    succeedsPlain: true,
    run: storeMuch,
  },
];
