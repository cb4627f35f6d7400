import { PassThrough } from "node:stream";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, onTestFinished, test } from "vitest";
import { type Clock, systemClock } from "../../../src/base/clock.js";
import { Budget } from "../../../src/base/budget.js";
import type { BrowserId } from "../../../src/base/ids.js";
import { openPipe } from "../../../src/browser/cdp/pipe.js";
import { RunningMapper } from "../../../src/gateway/bidi/running-mapper.js";
import { defaultGatewayLimits } from "../../../src/gateway/limits.js";
import { silentLog } from "../../support/browser/chromium-host.js";
import { until } from "../../support/browser/chromium-until.js";
import { DrivenClock } from "../../support/driven-clock.js";
import { builtMapper } from "../../support/gateway/built-judge.js";
import { endsAt } from "../../support/gateway/client-ends.js";
import type { BedOptions } from "../../support/gateway/gateway-bed.js";
import { type GatewayBrowser, openGatewayBrowser } from "../../support/gateway/gateway-browser.js";
import { mappersOf } from "../../support/gateway/mappers.js";
import { connectBidi, type RawBidi } from "../../support/gateway/raw-bidi.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";

const mebibyte = 2 ** 20;

async function open(
  options: BedOptions,
): Promise<{
  readonly browser: GatewayBrowser;
  readonly client: RawBidi;
  readonly context: string;
  readonly mapper: number;
}> {
  const browser = await openGatewayBrowser({}, options);
  onTestFinished(() => browser.close());
  const client = await connectBidi(browser.bidi());
  const context = await client.begin();
  const [mapper = 0] = mappersOf(process.pid);
  return { browser, client, context, mapper };
}

/** The same clock, and how often somebody has asked it for a time. */
function counted(clock: Clock): { readonly clock: Clock; readonly waits: number } {
  let waits = 0;
  return {
    clock: {
      now: () => clock.now(),
      monotonic: () => clock.monotonic(),
      after: (...asked) => ((waits += 1), clock.after(...asked)),
      every: (...asked) => ((waits += 1), clock.every(...asked)),
    },
    get waits() {
      return waits;
    },
  };
}

const byBrowser = { code: 1011, reason: "browser_gone" };

test("a client whose mapper ends with its browser is told to have ended by that", async () => {
  const clock = new DrivenClock();
  const times = counted(clock);
  const { browser, client, mapper } = await open({ clock: times.clock });
  const ends = endsAt(browser);
  const { waits } = times;
  process.kill(mapper, "SIGKILL");
  await until("its end is seen", () => times.waits > waits);
  await clock.advance(1000);
  process.kill(browser.chromium.pid, "SIGKILL");
  expect(await client.closed).toEqual(byBrowser);
  expect(ends).toEqual(["browser"]);
});

test("so is one whose daemon stood still meanwhile", async () => {
  const times = counted(systemClock);
  const { browser, client, mapper } = await open({ clock: times.clock });
  const ends = endsAt(browser);
  const { waits } = times;
  process.kill(mapper, "SIGKILL");
  await until("its end is seen", () => times.waits > waits);
  await new Promise(setImmediate);
  process.kill(browser.chromium.pid, "SIGKILL");
  // Nothing of this process runs until the time is over.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2500);
  expect(await client.closed).toEqual(byBrowser);
  expect(ends).toEqual(["browser"]);
});

test("nobody else waits for a mapper that has ended with much unread", async () => {
  const clock = new DrivenClock();
  const limits = { highWaterBytes: mebibyte, cutBytes: 64 * mebibyte };
  const { browser, client, context, mapper } = await open({ clock, limits });
  await client.send("session.subscribe", { events: ["log.entryAdded"] });
  const other = await connectRaw(browser.url());
  const session = await other.attach(context);
  process.kill(mapper, "SIGSTOP");
  const before = clock.pending;
  await other.evaluate("void setInterval(() => console.log('x'.repeat(100_000)), 1)", session);
  await until("the browser is held", () => clock.pending > before);
  process.kill(mapper, "SIGKILL");
  expect(await other.evaluate("6 * 7", session)).toBe(42);
  await clock.advance(2000);
  expect((await client.closed).reason).toBe("the BiDi mapper of this client has ended");
  await other.close();
});

test("what a client says whose mapper could not be started is not kept", async () => {
  const clock = new DrivenClock();
  const ends: string[] = [];
  const none = (): void => {};
  const budget = { browserBytes: mebibyte, daemonBytes: mebibyte };
  const mapper = new RunningMapper(
    {
      browser: "b" as BrowserId,
      script: builtMapper(),
      setup: {
        session: { id: "s", webSocketUrl: "ws://there.example/", product: "Chrome/1", userAgent: "a" },
      },
      chromium: {
        pipe: openPipe(new PassThrough(), new PassThrough()),
        startSidecar: () => Promise.reject(new Error("there is no room")),
      },
      log: silentLog,
      clock,
      limits: defaultGatewayLimits,
      shared: { unread: new Budget(budget), unfinished: new Budget(budget) },
    },
    { toClient: none, toBrowser: none, wait: none, proceed: none, over: (_, why) => void ends.push(why) },
  );
  onTestFinished(() => mapper.close());
  const say = (): WeakRef<Buffer> => {
    const message = Buffer.alloc(mebibyte);
    mapper.fromClient(message);
    return new WeakRef(message);
  };
  mapper.start();
  const said = [say()];
  await until("it could not be started", () => clock.pending === 1);
  said.push(say());
  await until("they are over", () => {
    collectGarbage();
    return said.every((message) => message.deref() === undefined);
  });
  await clock.advance(2000);
  expect(ends).toEqual(["the BiDi mapper of this client has ended"]);
});

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;
