import { describe, expect, test } from "vitest";
import { systemClock } from "../../src/base/clock.js";
import { newLeaseId } from "../../src/base/ids.js";
import { Monitor } from "../../src/telemetry/monitor/monitor.js";
import { silentLog } from "../support/browser/chromium-host.js";
import { engines } from "../support/browser/chromium-kinds.js";
import { armedBrowser } from "../support/gateway/armed-browser.js";
import { pageCategories } from "../support/telemetry/monitored-browser.js";
import { SeenEvents } from "../support/telemetry/seen-events.js";

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
    const stop = await keepAsking();
    await letInAgain();
    await evaluate("for (let line = 0; line < 4000; line += 1) console.log(line)");
    await events.find(
      "monitor_events_dropped",
      (data) => (data["paused_targets"] as readonly string[]).length > 0,
    );
    await letInAgain();
    await monitor.stop();
    await letInAgain();
    const told = events.all.length;
    await evaluate("console.log('nobody hears it')");
    expect((await stop()).filter((answer) => !answer.startsWith("{"))).toEqual([]);
    expect(events.all).toHaveLength(told);
  });
});
