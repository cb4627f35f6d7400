import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "../../../../src/base/clock.js";
import { within } from "../../../../src/base/deadline.js";
import { until } from "../../../support/browser/chromium-until.js";
import { connectRaw } from "../../../support/gateway/raw-cdp.js";
import { Page } from "../../egress/corpus/page.js";
import type { Settings } from "../daemon.js";
import { type ClientAttempt, NothingProved, type Work } from "./attempt.js";

/** The configuration that the repository ships. */
const readShipped = async (): Promise<Settings> =>
  JSON.parse(await readFile(join(process.cwd(), "config/default.json"), "utf8")) as Settings;

const logLimitMs = 20_000;

const loopbackNames = ["127.0.0.1", "localhost", "0.0.0.0", "[::ffff:127.0.0.1]"];

/** The proof's own daemons open the loopback to pages, so this one is asked of a daemon that does not. */
async function asksLoopback({ openBeside, serve, site, saw }: Work): Promise<void> {
  const ways = { fetched: serve("/fetched", {}), opened: serve("/opened", {}) };
  const beside = await openBeside(await readShipped());
  try {
    const { cdpUrl, isPlain, close } = await beside.open();
    try {
      await askByEachName(cdpUrl, ways);
    } finally {
      await close();
    }
    const got = Object.entries(ways).filter(([, url]) => site.said(new URL(url).pathname).length > 0);
    for (const [way] of got) saw(`a site of the host's loopback is ${way}`);
    if (got.length > 0 || isPlain) return;
    // A daemon writes its log when it has time for it.
    await until("a denial is logged", () => beside.log().includes("egress denied"), logLimitMs).catch(() => {
      throw new NothingProved("its daemon has denied nothing");
    });
  } finally {
    await beside.close();
  }
}

async function askByEachName(cdpUrl: string, ways: { fetched: string; opened: string }): Promise<void> {
  const cdp = await connectRaw(cdpUrl);
  const under = (url: string, hostname: string): string => Object.assign(new URL(url), { hostname }).href;
  try {
    const page = await Page.open(cdp, "about:blank");
    for (const name of loopbackNames) {
      await page.goto(under(ways.opened, name));
      const asked = `fetch(${JSON.stringify(under(ways.fetched, name))}, { mode: "no-cors" })`;
      await page.evaluate(`await soon(${asked}.catch(String), 5000);`);
    }
  } finally {
    cdp.socket.terminate();
  }
}

/** More than a pod's /dev/shm has, from each of two origins: a page's quota is less than that. */
const blocksWanted = 40;
const blockMebibytes = 64;
/** The `browser.max_scratch_bytes` of pods (k8s/base/config.yaml). */
const limitMebibytes = 1024;
/** Files are looked at every ten seconds, and a browser that has too much is then ended. */
const watchLimitMs = 60_000;
/** A script that stores so many blocks, or as many as it can; gives how many. */
const storing = (blocks: number): string => `const directory = await navigator.storage.getDirectory();
const block = new Uint8Array(${blockMebibytes} * 2 ** 20).fill(1);
let stored = 0;
try {
  for (; stored < ${blocks}; stored += 1) {
    const file = await (await directory.getFileHandle("block-" + stored, { create: true })).createWritable();
    await file.write(block);
    await file.close();
  }
} catch {}
return stored;`;

/** What pages of one browser store is held by its limit, so that others of the pod can go on. */
async function fillsSharedMemory({ openPod, serve, saw }: Work): Promise<void> {
  const url = serve("/stores", { body: "<!doctype html><title>stores</title>" });
  const pod = await openPod({ egress: { private_hosts: ["127.0.0.0/8"] } });
  try {
    const [browser, neighbour] = await Promise.all([pod.open(), pod.open()]);
    const stored = await storedBy(browser.cdpUrl, url);
    // Writes to a file system of that size fail a little below it, for a profile needs some, too.
    const isFull = browser.isolation?.limits?.scratch === "mount" && Number(stored) > 0.8 * limitMebibytes;
    if (stored !== undefined && stored > limitMebibytes) saw(`it stores ${stored} MiB, and nobody ends that`);
    else if (stored !== undefined && !isFull) throw new NothingProved(`it stored ${stored} MiB`);
    await tryStoring(neighbour.cdpUrl, url).catch(({ message }: Error) => saw(`a neighbour: ${message}`));
    await pod.open().catch(({ message }: Error) => saw(`no other browser can be had: ${message}`));
  } finally {
    await pod.close();
  }
}

/** Has a page of a neighbour, which was there before, store a little; throws where it cannot. */
async function tryStoring(cdpUrl: string, url: string): Promise<void> {
  const cdp = await connectRaw(cdpUrl);
  try {
    const stored = await (await Page.open(cdp, url)).evaluate(storing(1));
    if (stored !== 1) throw new Error("its page can store nothing any more");
  } finally {
    cdp.socket.terminate();
  }
}

/** How many MiB two pages of a browser could store; undefined where their browser was ended for it. */
async function storedBy(cdpUrl: string, url: string): Promise<number | undefined> {
  const cdp = await connectRaw(cdpUrl);
  try {
    const names = ["127.0.0.1", "localhost"];
    const pages = await Promise.all(
      names.map((hostname) => Page.open(cdp, Object.assign(new URL(url), { hostname }).href)),
    );
    const counts = Promise.all(pages.map((page) => page.evaluate(storing(blocksWanted))));
    const all = counts.then((each) => each.reduce<number>((sum, count) => sum + Number(count ?? 0), 0));
    const ended = cdp.closed.then(() => undefined);
    const blocks = await Promise.race([all, ended]);
    const limit = { what: "the end of a browser that stores too much", limitMs: watchLimitMs };
    return await within(systemClock, limit, ended).catch(() => Number(blocks) * blockMebibytes);
  } finally {
    cdp.socket.terminate();
  }
}

/** What a daemon keeps from its pages as it is shipped, before anybody has opened something to them. */
export const shipped: readonly ClientAttempt[] = [
  {
    name: "a site of the host's loopback, from a page of a daemon as it is shipped",
    vector: "page",
    isQuick: true,
    succeedsPlain: true,
    run: asksLoopback,
  },
  {
    name: "what pages store in a pod's /dev/shm, and a neighbour",
    vector: "page",
    needsPod: true,
    succeedsPlain: { because: "only a pod has so small a /dev/shm, and its browsers share it" },
    run: fillsSharedMemory,
  },
];
