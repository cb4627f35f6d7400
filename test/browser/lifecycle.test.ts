import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Millis, systemClock } from "../../src/base/clock.js";
import type { Chromium } from "../../src/browser/chromium.js";
import { LaunchFailed, type LaunchStage } from "../../src/browser/launch-attempt.js";
import type { BrowserHost } from "../../src/browser/host.js";
import { launchChromium } from "../support/browser/launch-chromium.js";
import { nothing, takeCensus } from "../support/browser/chromium-census.js";
import { type FakeChromium, makeFakeChromium, readableByFakes } from "../support/browser/chromium-fake.js";
import { launchSpec, openTestHost } from "../support/browser/chromium-host.js";
import { makeStubbornTree, stubbornTreeNames } from "../support/browser/stubborn-trees.js";
import { until } from "../support/browser/chromium-until.js";

let fake: FakeChromium;
let host: BrowserHost;
beforeAll(async () => {
  fake = await makeFakeChromium();
  host = await openTestHost({ named: bothAre(fake.executable), readablePaths: readableByFakes });
});
afterAll(async () => {
  await host.close();
  await fake.remove();
});

const bothAre = (path: string) => ({ chromium: path, "headless-shell": path });

const noUids = new Set<number>();
/** A launch that does not come to anything. Its limit begins when it comes to Chromium's start. */
function launchImpatiently(): Promise<Chromium> {
  const launchLimitMs = 1_500;
  let begin = (): void => {};
  const spawned = new Promise<void>((resolve) => (begin = resolve));
  const after = (delayMs: Millis, task: () => void): (() => void) => {
    if (delayMs !== launchLimitMs) return systemClock.after(delayMs, task);
    let isCancelled = false;
    let cancel = (): void => void (isCancelled = true);
    void spawned.then(() => {
      if (!isCancelled) cancel = systemClock.after(delayMs, task);
    });
    return () => cancel();
  };
  const onStage = (stage: LaunchStage): void => void (stage === "spawn" && begin());
  const impatient = { ...host, clock: { ...systemClock, after }, launchLimitMs };
  return launchChromium(launchSpec(), impatient, { onStage });
}
const census = () => takeCensus(host.scratchDirectory, noUids);
const failure = async (launch: Promise<unknown>): Promise<LaunchFailed> => {
  const error: unknown = await launch.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(LaunchFailed);
  return error as LaunchFailed;
};

test("a fake process launches, is probed, reset and closed like a browser", async () => {
  await fake.turn({});
  const chromium = await launchChromium(launchSpec(), host);
  await chromium.probe(20_000);
  expect(await chromium.reset(100_000)).toEqual({ differences: [] });
  await chromium.close(20_000);
  expect(await census()).toEqual(nothing);
});

test("a launch that ends at once fails with the code and the last lines written", async () => {
  await fake.turn({ failWithCode: 21, lines: ["first", "the profile is locked"] });
  const error = await failure(launchChromium(launchSpec(), host));
  expect(error).toMatchObject({ stage: "spawn", lastLines: ["first", "the profile is locked"] });
  expect(error.message).toContain("code 21");
  expect(await census()).toEqual(nothing);
});

test("a launch that says nothing fails at its limit and leaves nothing", async () => {
  await fake.turn({ delayMs: 60_000 });
  const error = await failure(launchImpatiently());
  expect(error).toMatchObject({ stage: "spawn", message: expect.stringContaining("1500 ms") });
  expect(await census()).toEqual(nothing);
});

test("a launch without a page fails at its limit and leaves nothing", async () => {
  await fake.turn({ ignore: ["Target.setDiscoverTargets"] });
  expect((await failure(launchImpatiently())).stage).toBe("spawn");
  expect(await census()).toEqual(nothing);
});

test.each(["preparing", "spawn", "answer", "page"] as const)(
  "a launch given up at stage %s leaves nothing",
  async (stage) => {
    await fake.turn({});
    const abort = new AbortController();
    const onStage = (reached: string): void => (reached === stage ? abort.abort() : undefined);
    await failure(launchChromium(launchSpec(), host, { signal: abort.signal, onStage }));
    expect(await census()).toEqual(nothing);
  },
);

test("a headful launch given up while its display starts leaves no display", async () => {
  const abort = new AbortController();
  const onStage = (reached: string): void =>
    void (reached === "display" && setImmediate(() => abort.abort()));
  const spec = launchSpec({ engine: "chromium", headless: false });
  await failure(launchChromium(spec, host, { signal: abort.signal, onStage }));
  expect(await census()).toEqual(nothing);
});

test("a signal that was aborted before starts nothing", async () => {
  const error = await failure(launchChromium(launchSpec(), host, { signal: AbortSignal.abort() }));
  expect(error.stage).toBe("preparing");
  expect(await census()).toEqual(nothing);
});

test("an engine that is not installed fails the launch and says so", async () => {
  const bare = await openTestHost({ named: bothAre("/nonexistent/chromium") });
  const error = await failure(launchChromium(launchSpec(), bare));
  expect(error.message).toContain("no executable of headless-shell");
  await bare.close();
});

test("a browser that ends by itself is noticed and cleared up", async () => {
  await fake.turn({ exitOn: "Target.activateTarget", exitCode: 3 });
  const chromium = await launchChromium(launchSpec(), host);
  chromium.pipe.send('{"id":1073741825,"method":"Target.activateTarget"}');
  expect(await chromium.exited).toMatchObject({ code: 3 });
  await chromium.kill();
  expect(await census()).toEqual(nothing);
});

test.each(stubbornTreeNames)("%s: a browser that leaves them ends, and gives its uid back", async (tree) => {
  await fake.turn({});
  const settings = { named: bothAre(fake.executable), readablePaths: readableByFakes, usesMounts: false };
  const onDisk = await openTestHost(settings);
  const chromium = await launchChromium(launchSpec(), onDisk);
  makeStubbornTree(tree, chromium.directories.root);
  await chromium.kill();
  expect(await takeCensus(onDisk.scratchDirectory, noUids)).toEqual(nothing);
  expect(onDisk.uids?.isTaken(chromium.isolation.uid ?? 0)).not.toBe(true);
  await onDisk.close();
});

test("a probe without an answer fails at its limit", async () => {
  await fake.turn({ muteAfterLaunch: true });
  const chromium = await launchChromium(launchSpec(), host);
  await expect(chromium.probe(100)).rejects.toThrow("100 ms");
  await chromium.close(200);
  expect(await census()).toEqual(nothing);
});

test("browsers side by side have uids of their own, and a uid is given again only after its browser is gone", async () => {
  await fake.turn({});
  const [first, second] = await Promise.all([
    launchChromium(launchSpec(), host),
    launchChromium(launchSpec(), host),
  ]);
  const uids = [first.isolation.uid, second.isolation.uid];
  if (host.uids) expect(new Set(uids).size).toBe(2);
  await first.kill();
  const third = await launchChromium(launchSpec(), host);
  expect(third.isolation.uid).toBe(first.isolation.uid);
  await Promise.all([second.kill(), third.kill()]);
  expect(await census()).toEqual(nothing);
});

interface StuckHost {
  readonly stuck: BrowserHost;
  readonly uids: NonNullable<BrowserHost["uids"]>;
  /** The uid that was taken last. */
  lastUid(): number;
  letGo(): void;
}

/** Cgroups cannot be removed there at first, as where a process does not end. */
function stuckHost(): StuckHost | undefined {
  const { cgroups, uids } = host;
  if (!cgroups || !uids) return undefined;
  let isStuck = true;
  let last = -1;
  const make: typeof cgroups.make = async (...given) => {
    const cgroup = await cgroups.make(...given);
    const remove = async (): Promise<void> => {
      if (isStuck) throw new Error("there is still a process");
      await cgroup.remove();
    };
    return { ...cgroup, remove };
  };
  const stuck = {
    ...host,
    cgroups: { ...cgroups, make },
    uids: { ...uids, take: () => (last = uids.take()) },
  };
  return { stuck, uids, lastUid: () => last, letGo: () => void (isStuck = false) };
}

test.each<[string, (stuck: BrowserHost) => Promise<unknown>]>([
  [
    "a browser that is killed",
    async (stuck) => {
      await fake.turn({});
      const chromium = await launchChromium(launchSpec(), stuck);
      await chromium.kill();
    },
  ],
  [
    "a browser that ends by itself",
    async (stuck) => {
      await fake.turn({ exitOn: "Target.activateTarget" });
      const chromium = await launchChromium(launchSpec(), stuck);
      chromium.pipe.send('{"id":1073741825,"method":"Target.activateTarget"}');
      await chromium.exited;
      await chromium.kill();
    },
  ],
  [
    "a browser that is to be left",
    async (stuck) => {
      await fake.turn({});
      const chromium = await launchChromium(launchSpec(), stuck);
      await chromium.stopAndKeep(20_000);
    },
  ],
  [
    "a launch that fails",
    async (stuck) => {
      await fake.turn({ failWithCode: 21 });
      await launchChromium(launchSpec(), stuck);
    },
  ],
])("%s keeps its uid until nothing of it runs any more, and its end is tried again", async (_, end) => {
  const found = stuckHost();
  if (!found) return;
  const { stuck, uids, lastUid, letGo } = found;
  await expect(end(stuck)).rejects.toThrow();
  expect(uids.isTaken(lastUid())).toBe(true);
  expect((await census()).directories).toHaveLength(1);
  letGo();
  await until("its end", () => !uids.isTaken(lastUid()));
  expect(await census()).toEqual(nothing);
});

test("a workspace whose restart has left something running is neither discarded nor started in", async () => {
  const found = stuckHost();
  if (!found) return;
  const { stuck, uids, lastUid, letGo } = found;
  await fake.turn({});
  const spec = launchSpec();
  const adopt = await (await launchChromium(spec, host)).stopAndKeep(20_000);
  await fake.turn({ failWithCode: 21 });
  await failure(launchChromium(spec, stuck, { adopt }));
  await fake.turn({});
  expect((await failure(launchChromium(spec, host, { adopt }))).stage).toBe("preparing");
  await expect(adopt.discard()).rejects.toThrow("cgroup");
  expect([lastUid(), uids.isTaken(adopt.uid ?? -1)]).toEqual([-1, true]);
  letGo();
  await adopt.discard();
  expect(uids.isTaken(adopt.uid ?? -1)).toBe(false);
  expect(await census()).toEqual(nothing);
});

test("a stop in order takes no longer than its limit, however much of it Chromium leaves unanswered", async () => {
  await fake.turn({ ignore: ["Storage.getCookies", "Storage.clearDataForOrigin", "Browser.close"] });
  const chromium = await launchChromium(launchSpec({ isForOne: true }), host);
  const startedAt = performance.now();
  const endedAt = chromium.exited.then(() => performance.now());
  const kept = await chromium.stopAndKeep(4000);
  // What is done after its exit is no part of the limit, and has an end all the same.
  expect(performance.now() - startedAt).toBeLessThan(30_000);
  expect((await endedAt) - startedAt).toBeLessThan(5500);
  expect(kept.isWhole).toBe(false);
  await kept.discard();
});

test.each(["Storage.getCookies", "Storage.clearDataForOrigin", "Browser.close"])(
  "a stop in order that hangs at %s is over at once when it is given up",
  async (method) => {
    await fake.turn({ ignore: [method] });
    const chromium = await launchChromium(launchSpec({ isForOne: true }), host);
    const giveUp = new AbortController();
    const leaving = chromium.stopAndKeep(600_000, giveUp.signal);
    // It comes to that command meanwhile: the fake answers in the order in which it was asked.
    for (let asked = 0; asked < 8; asked += 1) await chromium.probe(20_000);
    giveUp.abort();
    const kept = await leaving;
    expect(kept.isWhole).toBe(false);
    await kept.discard();
  },
);

test("a scratch directory whose path leaves no room for Chromium's socket is refused at the start, and not made", async () => {
  const scratchDirectory = join(tmpdir(), "x".repeat(40));
  await expect(openTestHost({ scratchDirectory })).rejects.toThrow("which Chromium cannot use");
  expect(existsSync(scratchDirectory)).toBe(false);
});
