import { appendFileSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { newBrowserId, newLeaseId, onDemandPartition } from "../../src/base/ids.js";
import { CgroupMemory } from "../../src/browser/resources/cgroup-memory.js";
import { KernelLog } from "../../src/browser/resources/kernel-log.js";
import { Slot } from "../../src/node/slot.js";
import { lookForLastOomKills, lookForOomKills } from "../../src/node/system-events.js";
import { BrowserTelemetry } from "../../src/telemetry/browser-telemetry.js";
import type { EventBatch } from "../../src/telemetry/ports.js";
import { recordsOf } from "../support/browser/kernel-records.js";
import { makeRecorder } from "../support/telemetry/recorder.js";

const mebibyte = 2 ** 20;
const system = { revision: 1, telemetry: JSON.stringify({ browser: { system: { enabled: true } } }) };

/** A browser of a cgroup that is files of the test's own, as the kernel's log is. */
async function openWatched() {
  const directory = await mkdtemp(join(tmpdir(), "remuda-late-log-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  const at = (name: string): string => join(directory, name);
  writeFileSync(at("memory.current"), `${100 * mebibyte}\n`);
  writeFileSync(at("memory.peak"), `${1000 * mebibyte}\n`);
  writeFileSync(at("kmsg"), "");
  const kernelLog = KernelLog.open("own", at("kmsg"));
  onTestFinished(() => kernelLog?.close());
  const count = (kills: number): void =>
    writeFileSync(at("memory.events"), `oom ${kills}\noom_kill ${kills}\n`);
  count(0);
  const killedIn = { cgroup: "b-1", uid: null };
  const memory = new CgroupMemory({ path: directory, version: 2, kernelLog, killedIn });
  const texts: string[] = [];
  const append = async ({ events }: EventBatch) => ({
    last: texts.push(...events.map(({ text }) => text)),
    lost: 0,
  });
  const recorder = makeRecorder({ append });
  const browser = newBrowserId(onDemandPartition);
  const telemetry = new BrowserTelemetry({ browser, launched: undefined, recorder });
  const chromium = {
    pid: 7,
    memory: async () => memory.read(),
    outOfMemoryKills: () => memory.outOfMemoryKills(),
    stopAndKeep: async () => ({}),
  };
  const slot = { telemetry, oomKills: 0, awaitedOomKills: 0, chromium };
  return {
    count,
    log: (pid: number) => appendFileSync(at("kmsg"), recordsOf({ pid })),
    begin: () => telemetry.told(newLeaseId(), system),
    look: () => lookForOomKills([slot]),
    lookLast: () => lookForLastOomKills(slot),
    /** What of a restart concerns this: the part that stops the old Chromium. */
    stopForRestart: () => Slot.prototype.stopAndKeep.call(slot as unknown as Slot, 1000),
    /** The pid, name and size that each event has told. */
    async told() {
      await recorder.close();
      const events = texts.map(
        (text) => (JSON.parse(text) as { readonly data: Record<string, unknown> }).data,
      );
      return events.map(({ pid, process_name, rss_kb }) => [pid, process_name, rss_kb]);
    },
  };
}

const known = (pid: number): unknown => [pid, "chrome", 1230];
const guessed = [7, "chromium", 900 * 1024];

test("a kill that the kernel has counted, and not yet written of, is told at the next look by the log's words", async () => {
  const { begin, count, log, look, told } = await openWatched();
  begin();
  count(1);
  await look();
  log(11);
  count(2);
  await look();
  log(12);
  await look();
  await look();
  expect(await told()).toEqual([known(11), known(12)]);
});

test("a kill of which the kernel writes nothing is told at the second look, and once", async () => {
  const { begin, count, look, told } = await openWatched();
  begin();
  count(1);
  await look();
  await look();
  await look();
  expect(await told()).toEqual([guessed]);
});

test("at a lease's end nothing is left for a later look", async () => {
  const { begin, count, log, look, lookLast, told } = await openWatched();
  begin();
  count(1);
  await look();
  count(2);
  log(11);
  await lookLast();
  log(12);
  await look();
  expect(await told()).toEqual([known(11), guessed]);
});

test("a kill before somebody wants to know is not told to them when its line comes", async () => {
  const { begin, count, log, look, told } = await openWatched();
  count(1);
  await look();
  begin();
  log(11);
  await look();
  count(2);
  log(12);
  await look();
  expect(await told()).toEqual([known(12)]);
});

test("beyond as many as are known of one browser no line is waited for", async () => {
  const { begin, count, log, look, told } = await openWatched();
  for (let kills = 1; kills <= 1000; kills += 1) {
    count(kills);
    log(kills);
    await look();
  }
  begin();
  count(1001);
  log(1001);
  await look();
  expect(await told()).toEqual([guessed]);
});

test("a kill whose line is waited for is told before another Chromium takes the place of the one that had it", async () => {
  const { begin, count, look, stopForRestart, told } = await openWatched();
  begin();
  count(1);
  await look();
  await stopForRestart();
  expect(await told()).toEqual([guessed]);
});
