import { expect, onTestFinished, test } from "vitest";
import { newBrowserId, onDemandPartition } from "../../../src/base/ids.js";
import { refusalOf } from "../../../src/gateway/cdp/protected-targets.js";
import { defaultGate } from "../../../src/gateway/gates/default-gate.js";
import { judgeAndWrite } from "../../../src/gateway/gates/judge.js";
import { JudgeThreads } from "../../../src/gateway/gates/judge-threads.js";
import { silentLog } from "../../support/browser/chromium-host.js";
import { DrivenClock } from "../../support/driven-clock.js";
import { builtJudge } from "../../support/gateway/built-judge.js";

const mebibyte = 2 ** 20;
/** Takes what it is given, and says nothing. */
const silent = new URL(
  "data:text/javascript,import { parentPort } from 'node:worker_threads'; parentPort.on('message', () => {});",
);

/** Says of what it is given how long that is. */
const measuring = new URL(
  "data:text/javascript,import { parentPort } from 'node:worker_threads';" +
    "parentPort.on('message', ({ message }) => parentPort.postMessage({ kind: 'fault', reply: `${message.length}` }));",
);

const directories = { downloads: "/downloads", uploads: "/uploads", temporary: "/temporary" };
const never = new AbortController().signal;
const judge = (
  threads: JudgeThreads,
  bytes: number,
  { gone = never, browser = newBrowserId(onDemandPartition) } = {},
) =>
  threads.judge({
    browser,
    gone,
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

test("a message that nobody waits for any more is given up at once, though no thread is free", async () => {
  const clock = new DrivenClock();
  const threads = new JudgeThreads({ script: silent, clock, log: silentLog, longestBytes: mebibyte });
  onTestFinished(() => threads.close());
  // More than there are threads.
  const others = Array.from({ length: 4 }, () => judge(threads, mebibyte));
  const going = new AbortController();
  const given = judge(threads, mebibyte, { gone: going.signal }).then(() => "given up");
  const waiting = new Promise((resolve) => void setImmediate(resolve, "waiting"));
  going.abort();
  expect(await Promise.race([given, waiting])).toBe("given up");
  await threads.close();
  expect(await Promise.all(others)).toEqual([undefined, undefined, undefined, undefined]);
});

test("where a client is gone, what others of its browser have sent is judged", async () => {
  const threads = new JudgeThreads({
    script: measuring,
    clock: new DrivenClock(),
    log: silentLog,
    longestBytes: mebibyte,
  });
  onTestFinished(() => threads.close());
  const browser = newBrowserId(onDemandPartition);
  const going = new AbortController();
  const answers = [10, 20, 30, 40, 50].map((bytes) =>
    judge(threads, bytes, { browser, gone: bytes === 30 || bytes === 50 ? going.signal : never }),
  );
  going.abort();
  const measured = (bytes: number): object => ({ kind: "fault", reply: `${bytes}` });
  expect(await Promise.all(answers)).toEqual([
    measured(10),
    measured(20),
    undefined,
    measured(40),
    undefined,
  ]);
  expect(await judge(threads, 60, { browser, gone: going.signal })).toBeUndefined();
  expect(await judge(threads, 70, { browser })).toEqual(measured(70));
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
      gone: never,
      message: carried(carriers, longestBytes),
      context: { directories },
      isObserved: true,
      spent: () => {},
    });
    expect(judged).toMatchObject({ kind: "command", judgement: { kind: "pass" } });
  },
);

test("a long script of a mapper of BiDi is refused by an error, as a short one is", () => {
  const params = { functionDeclaration: "() => 1", serializationOptions: { serialization: "deep" } };
  const script = { id: 1, method: "Runtime.callFunctionOn", params };
  const judging = { gate: defaultGate, context: { directories }, isObserved: false };
  const judged = judgeAndWrite(Buffer.from(JSON.stringify(script)), judging);
  if (judged.kind !== "command" || judged.judgement.kind !== "pass") throw new Error(judged.kind);
  const why = "It is refused (protect_filled)";
  expect(refusalOf(judged.judgement.command, why)).toBe(refusalOf(script, why));
});

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
