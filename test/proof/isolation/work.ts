import { randomBytes } from "node:crypto";
import { systemClock } from "../../../src/base/clock.js";
import { within } from "../../../src/base/deadline.js";
import { Page } from "../egress/corpus/page.js";
import { connectRaw, type RawCdp } from "../../support/gateway/raw-cdp.js";
import { until } from "../../support/browser/chromium-until.js";
import { NothingProved, textsIn, type Work } from "./corpus/attempt.js";
import type { Browser, TestMachine, BrowserSource } from "./browser-source.js";
import type { Site } from "./site.js";
import type { Target } from "./victims.js";

interface Given {
  readonly source: BrowserSource;
  readonly browser: Browser;
  readonly site: Site;
  /** Set where the attempt has to succeed, so that what it is after can be waited for. */
  readonly isControl: boolean;
  /** What the attempt has seen by itself. */
  readonly leaks: string[];
  /** Why what it has seen is no fault here. */
  readonly admitted: string[];
}

const connectLimitMs = 60_000;
/** Only a control that fails takes so long, and is begun once more in a browser of its own. */
const controlLimitMs = 120_000;
const laterLimitMs = 30_000;

/** What one attempt works with, and its end: pages that it opened are closed. */
export async function openWork({
  source,
  browser,
  site,
  isControl,
  leaks,
  admitted,
}: Given): Promise<{ work: Work; close(): Promise<void> }> {
  const { machine } = source;
  const nonce = `n${randomBytes(6).toString("hex")}`;
  const cdp = await reconnecting(browser);
  const before = new Set((await infosOf(cdp)).map(({ targetId }) => targetId));
  const renewed: (() => Promise<void>)[] = [];
  const serve: Work["serve"] = (path, served) => site.serve(`/${nonce}${path}`, served);
  const open: Work["open"] = async (
    url = serve("/page", { body: "<!doctype html><title>allowed</title><body>allowed" }),
  ) => await Page.open(cdp, url);
  const work: Work = {
    nonce,
    engine: source.kind.engine,
    machine,
    browser,
    cdp,
    site,
    targets: machine.targets,
    few: fewOf(machine),
    serve,
    saw: (what) => void leaks.push(what),
    hasSeen: () => leaks.length > 0,
    open,
    readFiles: (paths) => readFiles(work, paths),
    shown: () => shown(cdp),
    async shows(holds) {
      if (isControl)
        return await until("what the attempt is after", holds, controlLimitMs).catch(() => false);
      await comeLater(work);
      return await holds();
    },
    hasWords: (found) => wordsIn(found, machine).length > 0,
    async untilFound(find) {
      let found: unknown;
      await work.shows(async () => work.hasWords((found = await find())));
      return found;
    },
    openKeeping: () => source.openKeeping(),
    openBeside: (settings) => source.openBeside(settings),
    async openPod(settings) {
      if (!source.openPod) throw new NothingProved("there is no pod");
      return await source.openPod(settings);
    },
    admits: (because) => void admitted.push(because),
    async renewed() {
      const next = await openWork({ source, browser, site, isControl, leaks, admitted });
      renewed.push(next.close);
      return { ...next.work, nonce };
    },
  };
  return {
    work,
    async close() {
      await Promise.all(renewed.map((end) => end()));
      const leave = async (): Promise<void> => {
        const opened = (await infosOf(cdp)).filter(
          ({ targetId, type }) => !before.has(targetId) && type === "page",
        );
        await Promise.all(opened.map(({ targetId }) => cdp.send("Target.closeTarget", { targetId })));
      };
      await within(systemClock, { what: "closing pages", limitMs: 3000 }, leave()).catch(() => {});
      cdp.socket.close();
    },
  };
}

const sorts = [
  "/etc/passwd",
  "the cluster secret",
  "a file in /tmp",
  "a file in /dev/shm",
  "the profile of another browser",
  "the daemon's environment",
];
const fewOf = ({ targets }: TestMachine): readonly Target[] =>
  targets.filter(({ what }) => sorts.includes(what));

/** What the words found in anything given stand for. */
export function wordsIn(given: unknown, { words }: TestMachine): string[] {
  const texts = textsIn(given);
  return [...words].filter(([each]) => texts.some((text) => text.includes(each))).map(([, what]) => what);
}

/**
 * An allowed request that begins now arrives after all that the browser has begun before; one that is gone
 * sends none.
 */
async function comeLater({ cdp, site, serve }: Work): Promise<void> {
  const path = `/later-${randomBytes(6).toString("hex")}`;
  const url = serve(path, {});
  const asked = async (): Promise<void> => {
    const { result } = await cdp.send("Target.createTarget", { url, background: true });
    if (result === undefined) return;
    await site.heard(new URL(url).pathname);
    await cdp.send("Target.closeTarget", result);
  };
  const limit = { what: "an allowed request", limitMs: laterLimitMs };
  await within(systemClock, limit, Promise.race([asked(), cdp.closed])).catch(() => {});
}

/** A browser that restarts for an extension is away for a moment. */
async function reconnecting({ cdpUrl }: Browser): Promise<RawCdp> {
  return await within(systemClock, { what: "connecting", limitMs: connectLimitMs }, connectRaw(cdpUrl));
}

interface Info {
  readonly targetId: string;
  readonly type: string;
}

async function infosOf(cdp: RawCdp): Promise<Info[]> {
  const { result } = await cdp.send("Target.getTargets");
  return (result?.["targetInfos"] ?? []) as Info[];
}

/** One file at a time: a browser that is refused one of many is refused them all. */
async function readFiles({ open, serve }: Work, paths: readonly string[]): Promise<unknown> {
  const page = await open(serve("/files", { body: "<!doctype html><input type=file multiple>" }));
  const { result } = await page.command("Runtime.evaluate", {
    expression: "document.querySelector('input')",
  });
  const { objectId } = (result?.["result"] ?? {}) as { objectId?: string };
  const got: unknown[] = [];
  for (const path of paths) {
    got.push((await page.command("DOM.setFileInputFiles", { files: [path], objectId })).error);
    got.push(
      await page.evaluate(
        "return await soon(document.querySelector('input').files[0]?.text().catch(String), 1000)",
      ),
    );
  }
  return got;
}

/** Everything that pages, frames and workers show by now. */
async function shown(cdp: RawCdp): Promise<string> {
  const kinds = ["page", "iframe", "background_page", "webview"];
  const infos = (await infosOf(cdp)).filter(({ type }) => kinds.includes(type));
  const texts = await Promise.all(
    infos.map(
      async ({ targetId }) =>
        await within(systemClock, { what: "a page's text", limitMs: 10_000 }, textOf(cdp, targetId)).catch(
          () => "",
        ),
    ),
  );
  return texts.join("\n");
}

const textOf = async (cdp: RawCdp, targetId: string): Promise<string> => {
  const session = await cdp.attach(targetId);
  return String(
    await cdp.evaluate(
      "location.href + '\\n' + (document.documentElement?.outerHTML ?? '') + '\\n' + (document.body?.innerText ?? '')",
      session,
    ),
  );
};
