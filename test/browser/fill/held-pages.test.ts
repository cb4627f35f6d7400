import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Clock, systemClock } from "../../../src/base/clock.js";
import type { Chromium } from "../../../src/browser/chromium.js";
import { DrivenClock } from "../../support/driven-clock.js";
import { PipeClient } from "../../support/browser/chromium-client.js";
import { engines } from "../../support/browser/chromium-kinds.js";
import { until } from "../../support/browser/chromium-until.js";
import { fillBy, fillOf, shorten } from "../../support/browser/fill/fill-bed.js";
import { login } from "../../support/browser/fill/fill-case.js";
import { useFilledChromium } from "../../support/browser/fill/filled-chromium.js";

const bed = useFilledChromium();
beforeAll(() => bed.site.serve({ body: login }));

describe.each(engines)("a page of %s", (_, spec) => {
  let chromium: Chromium;
  let client: PipeClient;
  let session: string;
  beforeAll(async () => {
    chromium = await bed.launch(spec);
    client = new PipeClient(chromium);
  });
  beforeEach(async () => {
    session = await client.attach();
    await client.open("about:blank", session);
    await client.open(`${bed.site.here}/`, session);
  });
  afterEach(() => client.send("Target.detachFromTarget", { sessionId: session }));

  const fill = async (timeoutMs: number, clock: Clock = systemClock): Promise<object> => {
    const fields = [
      ["#user", "secret-1"],
      ["#password", "secret-2"],
    ] as const;
    return shorten(await fillBy(chromium.pipe, fillOf({ fields, timeoutMs }), clock));
  };
  const values = (): Promise<unknown> => client.evaluate("user.value + password.value", session);
  const filled = { status: "completed", outcomes: ["filled", "filled"] };

  test("that a client's debugger has stopped is filled", async () => {
    await client.send("Debugger.enable", {}, session);
    client.evaluate("debugger; 1", session).catch(() => {});
    await until("it is stopped", () => client.events.some(({ method }) => method === "Debugger.paused"));
    expect(await fill(10_000)).toEqual(filled);
    await client.send("Debugger.resume", {}, session);
    expect(await values()).toBe("secret-1secret-2");
  });

  test("that a client has frozen is filled", async () => {
    await client.send("Page.setWebLifecycleState", { state: "frozen" }, session);
    expect(await fill(10_000)).toEqual(filled);
    await client.send("Page.setWebLifecycleState", { state: "active" }, session);
    expect(await values()).toBe("secret-1secret-2");
  });

  test("that a client stops in the turn of a write: that field is unknown, and no other is written", async () => {
    await client.send("Debugger.enable", {}, session);
    await client.send("DOMDebugger.setEventListenerBreakpoint", { eventName: "input" }, session);
    await client.evaluate(`void user.addEventListener("input", () => {})`, session);
    // Where its clock stands still the limit holds for each command, so that no command before is the one.
    expect(await fill(3000, new DrivenClock())).toEqual({
      status: "unknown",
      outcomes: ["unknown timeout", "not_attempted"],
    });
    await client.send("Debugger.resume", {}, session);
    expect(await values()).toBe("secret-1");
  });

  test("whose process hangs is not written, nor when it goes on later", async () => {
    const hanging = client.evaluate(
      "for (const from = performance.now(); performance.now() - from < 3000; );",
      session,
    );
    expect(await fill(1000)).toEqual({ status: "failed", outcomes: ["failed timeout", "not_attempted"] });
    await hanging;
    expect(await values()).toBe("");
  });
});
