import { readFileSync } from "node:fs";
import { buffer } from "node:stream/consumers";
import { Readable } from "node:stream";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { errnoOf } from "../../../src/base/errno.js";
import type { Chromium } from "../../../src/browser/chromium.js";
import type { FillWorkspace } from "../../../src/node/browser-assets.js";
import type { BrowserHost } from "../../../src/browser/host.js";
import { type FilledSpec, launchChromium } from "../../support/browser/launch-chromium.js";
import { packProfile } from "../../../src/browser/profile/pack-profile.js";
import { isLiving, processTreeOf } from "../../../src/browser/resources/processes.js";
import { unpackProfile } from "../../../src/browser/profile/unpack-profile.js";
import { PipeClient } from "../../support/browser/chromium-client.js";
import { nothing, takeCensus } from "../../support/browser/chromium-census.js";
import { launchSpec, openTestHost } from "../../support/browser/chromium-host.js";
import { engines } from "../../support/browser/chromium-kinds.js";
import { until } from "../../support/browser/chromium-until.js";
import { type LoginSite, openLoginSite } from "../../support/browser/sites/login-site.js";
import { signalLiving } from "../../support/living.js";

let host: BrowserHost;
let site: LoginSite;
const limits = { maxBytes: 2 ** 30, maxFiles: 10_000 };
const started: Chromium[] = [];
beforeAll(async () => {
  [host, site] = await Promise.all([openTestHost(), openLoginSite()]);
});
afterEach(async () => {
  await Promise.all(started.splice(0).map((chromium) => chromium.kill()));
});
afterAll(async () => {
  expect(await takeCensus(host.scratchDirectory, new Set())).toEqual(nothing);
  await Promise.all([host.close(), site.close()]);
});

async function start(spec: FilledSpec): Promise<Chromium> {
  const chromium = await launchChromium(spec, host);
  started.push(chromium);
  return chromium;
}

async function openIn(chromium: Chromium): Promise<(expression: string) => Promise<unknown>> {
  const client = new PipeClient(chromium);
  const session = await client.attach();
  await client.open(`${site.origin}/`, session);
  return (expression) => client.evaluate(expression, session);
}

async function findProcesses({ pid }: Chromium, word: string): Promise<number[]> {
  const tree = await processTreeOf(pid);
  return tree.filter((each) => commandLineOf(each).includes(word));
}

/** Empty for a process that has ended, as some do soon after the launch. */
function commandLineOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "latin1");
  } catch (error) {
    if (errnoOf(error) === "ENOENT" || errnoOf(error) === "ESRCH") return "";
    throw error;
  }
}

test.each(engines)(
  "%s: what a page stored is kept however slow the process is that writes it down",
  async (_, given) => {
    const first = await start(launchSpec(given));
    await (
      await openIn(first)
    )(`localStorage.setItem("held", "stored")`);
    const renderers = await findProcesses(first, "--type=renderer");
    const writers = await findProcesses(first, "storage.mojom.StorageService");
    for (const writer of writers) signalLiving(writer, "SIGSTOP");
    const leaving = first.stopAndKeep(100_000);
    await until(
      "the pages' processes gone",
      async () => !(await Promise.all(renderers.map(isLiving))).includes(true),
    );
    // It answers for as long as it has not been asked to exit.
    for (let probes = 0; probes < 20; probes += 1) await first.probe(60_000).catch(() => first.exited);
    for (const writer of writers) signalLiving(writer, "SIGCONT");
    const keptWorkspace = await leaving;
    const tar = await buffer(packProfile(keptWorkspace, limits));
    await keptWorkspace.discard();
    const fillWorkspace: FillWorkspace = async (room) => {
      await unpackProfile(Readable.from([tar]), room, limits);
      return [];
    };
    const second = await start(launchSpec({ ...given, fillWorkspace }));
    expect(await (await openIn(second))(`localStorage.getItem("held")`)).toBe("stored");
  },
);
