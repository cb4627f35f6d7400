import { describe, expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import { newLeaseId } from "../../../src/base/ids.js";
import { wholeOf } from "../../../src/browser/cdp/frame.js";
import { Monitor } from "../../../src/telemetry/monitor/monitor.js";
import { silentLog } from "../../support/browser/chromium-host.js";
import { engines } from "../../support/browser/chromium-kinds.js";
import { until } from "../../support/browser/chromium-until.js";
import { armedBrowser } from "../../support/gateway/armed-browser.js";
import { pageCategories } from "../../support/telemetry/monitored-browser.js";
import { SeenEvents } from "../../support/telemetry/seen-events.js";

/** A page is left alone soon. */
const rates = { messages: { most: 10, perSecond: 10 }, bytes: { most: 64 * 1024, perSecond: 64 * 1024 } };

describe.each(engines)("%s", (_, spec) => {
  const armed = armedBrowser(spec);

  test("telemetry takes an armed passkey from no page: when it leaves a page alone that says too much, and when it ends", async () => {
    const { browser, evaluate, keepAsking, letInAgain } = armed();
    const events = new SeenEvents();
    const parts = { clock: systemClock, log: silentLog, isRestarting: () => false, hasClients: () => true };
    const monitor = new Monitor({ ...parts, rates });
    const { pipe } = browser.chromium;
    const categories = new Set(pageCategories);
    await monitor.start({ pipe, lease: newLeaseId(), sink: events, categories });
    const heard = { given: 0, looks: 0 };
    pipe.onFrame((frame) => {
      const text = wholeOf(frame).toString("latin1", 0, 128);
      if (text.includes('"result":{"authenticatorId"')) heard.given += 1;
      if (text.includes('"result":{"credential":')) heard.looks += 1;
    });
    /** It is looked for twice more, the second time after all that was asked before. */
    const lookedFor = async (): Promise<void> => {
      const before = heard.looks;
      await until("it is looked for", () => heard.looks > before + 1);
    };
    const stop = await keepAsking();
    await letInAgain();
    await evaluate("for (let line = 0; line < 4000; line += 1) console.log(line)");
    await events.find(
      "monitor_events_dropped",
      (data) => (data["paused_targets"] as readonly string[]).length > 0,
    );
    await letInAgain();
    await lookedFor();
    await monitor.stop();
    await letInAgain();
    await lookedFor();
    expect(heard.given).toBe(0);
    const told = events.all.length;
    await evaluate("console.log('nobody hears it')");
    expect((await stop()).filter((answer) => !answer.startsWith("{"))).toEqual([]);
    expect(events.all).toHaveLength(told);
  });
});
