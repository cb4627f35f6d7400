import { expect, onTestFinished, test } from "vitest";
import { newBrowserId, onDemandPartition } from "../../../src/base/ids.js";
import { JudgeThreads } from "../../../src/gateway/gates/judge-threads.js";
import { silentLog } from "../../support/browser/chromium-host.js";
import { DrivenClock } from "../../support/driven-clock.js";
import { builtJudge } from "../../support/gateway/built-judge.js";

const mebibyte = 2 ** 20;
/** Takes what it is given, and says nothing. */
const silent = new URL(
  "data:text/javascript,import { parentPort } from 'node:worker_threads'; parentPort.on('message', () => {});",
);

const directories = { downloads: "/downloads", uploads: "/uploads", temporary: "/temporary" };
const judge = (threads: JudgeThreads, bytes: number) =>
  threads.judge({
    browser: newBrowserId(onDemandPartition),
    message: Buffer.alloc(bytes),
    context: { directories },
    isObserved: false,
    spent: () => {},
  });

test("a message that is not judged is given up after a time that grows with its length", async () => {
  const clock = new DrivenClock();
  const threads = new JudgeThreads({ script: silent, clock, log: silentLog, longestBytes: 64 * mebibyte });
  onTestFinished(() => threads.close());
  const given: unknown[] = [];
  const note = async (name: string, bytes: number): Promise<void> => {
    given.push([name, await judge(threads, bytes)]);
  };
  const judging = note("long", 64 * mebibyte);
  await clock.advance(10_001);
  expect(given).toEqual([]);
  await clock.advance(30_000);
  await judging;
  const short = note("short", mebibyte);
  await clock.advance(10_001);
  await short;
  expect(given).toEqual([
    ["long", undefined],
    ["short", undefined],
  ]);
});

/** A command in so many messages inside each other that is as long as it may be, or a little shorter. */
function carried(carriers: number, longestBytes: number): Buffer {
  const middle = "here";
  let text = JSON.stringify({ id: 1, method: "Runtime.evaluate", params: { expression: middle } });
  for (let at = 0; at < carriers; at += 1)
    text = JSON.stringify({
      id: 1,
      method: "Target.sendMessageToTarget",
      params: { sessionId: "S", message: text },
    });
  const [before = "", after = ""] = text.split(middle);
  // One character beyond Latin-1 doubles what the others take in memory.
  const room = longestBytes - text.length;
  return Buffer.from(`${before}\u0151${"x".repeat(room)}${after}`);
}

test.each([
  [0, 100],
  [4, 40],
])(
  "the longest message that a daemon allows is judged inside %i others, and ends nothing: %i MiB",
  async (carriers, mebibytes) => {
    const longestBytes = mebibytes * mebibyte;
    const threads = new JudgeThreads({
      script: builtJudge(),
      // How long it takes on a busy machine is no matter of this test.
      clock: new DrivenClock(),
      log: silentLog,
      longestBytes,
    });
    onTestFinished(() => threads.close());
    const judged = await threads.judge({
      browser: newBrowserId(onDemandPartition),
      message: carried(carriers, longestBytes),
      context: { directories },
      isObserved: true,
      spent: () => {},
    });
    expect(judged).toMatchObject({ kind: "command", judgement: { kind: "pass" } });
  },
);

test("where no thread can be started, a message is given up at once, and the next thread is asked for a second later", async () => {
  const clock = new DrivenClock();
  const warnings: unknown[] = [];
  const log = { ...silentLog, warn: (facts: unknown) => warnings.push(facts) };
  // Node.js refuses it in the constructor, as it does where the kernel gives no thread.
  const script = new URL("http://127.0.0.1/judge-worker.js");
  const threads = new JudgeThreads({ script, clock, log, longestBytes: mebibyte });
  onTestFinished(() => threads.close());
  threads.open();
  expect(await Promise.all([judge(threads, mebibyte), judge(threads, mebibyte)])).toEqual([
    undefined,
    undefined,
  ]);
  expect(warnings).toHaveLength(1);
  await clock.advance(1001);
  expect(await judge(threads, mebibyte)).toBeUndefined();
  expect(warnings).toHaveLength(2);
});
