import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Chromium, LaunchSpec } from "../../src/browser/chromium.js";
import type { BrowserHost } from "../../src/browser/host.js";
import { launchChromium } from "../support/browser/launch-chromium.js";
import { nothing, takeCensus } from "../support/browser/chromium-census.js";
import { launchSpec, openTestHost } from "../support/browser/chromium-host.js";

let host: BrowserHost;
beforeAll(async () => {
  host = await openTestHost();
});
afterAll(async () => {
  expect(await census()).toEqual(nothing);
  await host.close();
});

const ownUids = new Set<number>();
const census = () => takeCensus(host.scratchDirectory, ownUids);
async function launched(given: Partial<LaunchSpec>): Promise<Chromium> {
  const chromium = await launchChromium(launchSpec(given), host);
  if (chromium.isolation.uid !== null) ownUids.add(chromium.isolation.uid);
  return chromium;
}

const kinds: Record<string, Partial<LaunchSpec>> = {
  "headless-shell": { engine: "headless-shell", headless: true },
  "headless Chromium": { engine: "chromium", headless: true },
  "headful Chromium": { engine: "chromium", headless: false },
};

describe.each(Object.entries(kinds))("%s", (_name, given) => {
  test("launches, answers a probe, and leaves nothing when it is closed", async () => {
    const chromium = await launched(given);
    await chromium.probe(20_000);
    expect((await census()).processes.length).toBeGreaterThan(2);
    await chromium.close(20_000);
    expect(await chromium.exited).toMatchObject({ code: 0 });
    expect(await census()).toEqual(nothing);
  });

  test("leaves nothing when it is killed", async () => {
    const chromium = await launched(given);
    await chromium.kill();
    expect(await chromium.exited).toMatchObject({ signal: "SIGKILL" });
    expect(await census()).toEqual(nothing);
  });

  test("leaves nothing when its main process is killed from outside", async () => {
    const chromium = await launched(given);
    process.kill(chromium.pid, "SIGKILL");
    await chromium.exited;
    await chromium.kill();
    expect(await census()).toEqual(nothing);
  });
});
