import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { type TargetInfo, targetInfoOf } from "../../../src/browser/cdp/target-event.js";
import { systemClock } from "../../../src/base/clock.js";
import { Cdp } from "../../../src/browser/cdp/cdp.js";
import { bytesOf } from "../../../src/browser/cdp/frame.js";
import { readLists } from "../../../src/browser/cdp/list-reader.js";
import { openPipe } from "../../../src/browser/cdp/pipe.js";
import { until } from "../../support/browser/chromium-until.js";

const texts: readonly [name: string, depth: number, text: string][] = [
  ["a list alone", 1, '[{"a":[1,{"b":[]}]},"x,]}[","\\"\\\\",null,-1.5e3,[],[[2]]]'],
  ["an empty list", 1, " [ ] "],
  ["no list", 1, '{"a":1}'],
  ["a list in a reply", 3, '{"id":1,"result":{"cookies":[{"name":"é,\\u2028","path":"/"},{"a":[{}]}]}}'],
  ["several lists", 3, '{"id":1,"result":{"a":[1,2],"b":{"c":[3]},"é":[],"d":["]"]},"sessionId":"S"}'],
  ["an error", 3, '{"id":1,"error":{"code":-32000,"message":"no [such, thing]"}}'],
];

test.each(texts)("%s is read as JSON.parse reads it, wherever it is cut", async (_, depth, text) => {
  const bytes = Buffer.from(text);
  for (let at = 0; at <= bytes.length; at += 1) {
    const parts = [bytes.subarray(0, at), bytes.subarray(at)];
    expect(await readLists({ depth, parts })).toEqual(JSON.parse(text));
  }
});

test.each(["[1,2", "[1 2]", "[1,,2]x", '{"result":{"a":[1}]}', '["a', "[1]}", ""])(
  "%s is refused",
  async (text) => {
    for (const depth of [1, 3])
      await expect(readLists({ depth, parts: [Buffer.from(text)] })).rejects.toThrow();
  },
);

test("what is in no list is not read where it is long", async () => {
  const parts = [Buffer.from(`{"id":1,"result":{"a":"${"x".repeat(3 * 2 ** 20)}"}}`)];
  await expect(readLists({ depth: 3, parts })).rejects.toThrow("too much stands outside of lists");
});

/** What is read of a browser's pipe at once. */
const readBytes = 64 * 1024;

function open(): { cdp: Cdp; say(text: string): void; rounds(): number; heard(): number } {
  const output = new PassThrough();
  const pipe = openPipe(new PassThrough(), output);
  const cdp = new Cdp(pipe, systemClock);
  let [heardBytes, rounds, isCounting] = [0, 0, false];
  const count = (): void => {
    rounds += 1;
    if (isCounting) setImmediate(count);
  };
  // After the client has had it.
  pipe.onFrame((frame) => {
    heardBytes = bytesOf(frame);
    isCounting = true;
    setImmediate(count);
  });
  return {
    cdp,
    say(text) {
      const bytes = Buffer.from(`${text}\0`);
      for (let at = 0; at < bytes.length; at += readBytes) output.write(bytes.subarray(at, at + readBytes));
    },
    heard: () => heardBytes,
    rounds() {
      isCounting = false;
      return rounds;
    },
  };
}

test("an answer with all cookies that Chromium keeps is read over many rounds of the event loop", async () => {
  const { cdp, say, rounds } = open();
  const cookies = Array.from({ length: 3300 }, (_, at) => ({ name: `c${at}`, value: '"'.repeat(4000) }));
  // Its share of the event loop is counted by the clock, which goes on where other work has the processors.
  const asked = cdp.send("Storage.getCookies", {}, { limitMs: 60_000 });
  say(JSON.stringify({ id: 1, result: { cookies } }));
  const found = await asked;
  expect(rounds()).toBeGreaterThan(10);
  expect(found.cookies).toEqual(cookies);
});

test("an answer that is no JSON refuses its command", async () => {
  const { cdp, say } = open();
  const asked = cdp.send("Storage.getCookies", {});
  say(`{"id":1,"result":{"cookies":[${'{"name":"a"} '.repeat(50_000)}]}}`);
  await expect(asked).rejects.toThrow(SyntaxError);
});

test("of an event with an address of megabytes only its head is read", async () => {
  const { cdp, say, heard } = open();
  let told: TargetInfo | undefined;
  cdp.on("Target.targetInfoChanged", ({ targetInfo: info }) => (told = targetInfoOf(info)));
  const url = `https://example.com/#${"x".repeat(2 ** 21)}`;
  const targetInfo = { targetId: "T", type: "page", title: "a", url, browserContextId: "C" };
  say(JSON.stringify({ method: "Target.targetInfoChanged", params: { targetInfo } }));
  await until("it was heard", () => heard() > 2 ** 21);
  expect(told).toMatchObject({ targetId: "T", type: "page", browserContextId: "C" });
  expect(told?.url.length).toBeLessThan(5000);
});
