import { expect, onTestFinished, test } from "vitest";
import { newBrowserId, onDemandPartition } from "../../../src/base/ids.js";
import { JudgeThreads } from "../../../src/gateway/gates/judge-threads.js";
import { silentLog } from "../../support/browser/chromium-host.js";
import { DrivenClock } from "../../support/driven-clock.js";

const mebibyte = 2 ** 20;
/** Takes what it is given, and says nothing. */
const silent = new URL(
  "data:text/javascript,import { parentPort } from 'node:worker_threads'; parentPort.on('message', () => {});",
);

test("a message that is not judged is given up after a time that grows with its length", async () => {
  const clock = new DrivenClock();
  const threads = new JudgeThreads({ script: silent, clock, log: silentLog });
  onTestFinished(() => threads.close());
  const directories = { downloads: "/downloads", uploads: "/uploads", temporary: "/temporary" };
  const given: unknown[] = [];
  const judge = async (name: string, bytes: number): Promise<void> => {
    const judged = await threads.judge({
      browser: newBrowserId(onDemandPartition),
      message: Buffer.alloc(bytes),
      context: { directories },
      isObserved: false,
      spent: () => {},
    });
    given.push([name, judged]);
  };
  const judging = judge("long", 64 * mebibyte);
  await clock.advance(10_001);
  expect(given).toEqual([]);
  await clock.advance(30_000);
  await judging;
  const short = judge("short", mebibyte);
  await clock.advance(10_001);
  await short;
  expect(given).toEqual([
    ["long", undefined],
    ["short", undefined],
  ]);
});
