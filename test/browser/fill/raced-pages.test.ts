import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Chromium } from "../../../src/browser/chromium.js";
import { PipeClient } from "../../support/browser/chromium-client.js";
import { engines } from "../../support/browser/chromium-kinds.js";
import { until } from "../../support/browser/chromium-until.js";
import { fillBy, fillOf, pausedPipe, shorten, valuesOf } from "../../support/browser/fill/fill-bed.js";
import { login } from "../../support/browser/fill/fill-case.js";
import { useFilledChromium } from "../../support/browser/fill/filled-chromium.js";

const bed = useFilledChromium();
const fields = [
  ["#user", "secret-1"],
  ["#password", "secret-2"],
] as const;

describe.each(engines)("a page of %s that is named by its address", (_, spec) => {
  let chromium: Chromium;
  let client: PipeClient;
  let session: string;
  beforeAll(async () => {
    chromium = await bed.launch(spec);
    client = new PipeClient(chromium);
    session = await client.attach();
  });
  beforeEach(async () => {
    bed.site.serve({ body: login, others: { "/next": login } });
    await client.open("about:blank", session);
    await client.open(`${bed.site.here}/`, session);
  });

  /** Fills it while something is done when a call is about to be sent. */
  async function filled(
    during: { readonly text: string; readonly at: number },
    before: () => Promise<unknown>,
  ): Promise<object> {
    let isPaused = false;
    const pipe = pausedPipe(chromium.pipe, during, async () => {
      isPaused = true;
      await before();
    });
    const outcome = shorten(await fillBy(pipe, { ...fillOf({ fields }), page_url: `${bed.site.here}/` }));
    expect(isPaused).toBe(true);
    return outcome;
  }
  const isAt = (url: string) => () =>
    client.evaluate(`document.readyState === "complete" && location.href === "${url}"`, session);

  test.each([1, 2])(
    "is not filled where it goes to another origin before it is looked at (call %i)",
    async (at) => {
      const next = `${bed.site.other}/next`;
      const outcome = await filled({ text: "Page.getFrameTree", at }, async () => {
        await client.evaluate(`void (location.href = "${next}")`, session);
        await until("it has gone on", isAt(next));
      });
      expect(JSON.stringify(outcome)).toMatch(/page_not_found|target_changed/);
      expect(await valuesOf(client)).toEqual({});
    },
  );

  test("is not filled where it goes on and back to what is kept of it, amid that", async () => {
    const outcome = await filled({ text: "Page.createIsolatedWorld", at: 1 }, async () => {
      await client.evaluate(`void (location.href = "/next")`, session);
      await until("it has gone on", isAt(`${bed.site.here}/next`));
      await client.send("Runtime.evaluate", { expression: "history.back()" }, session).catch(() => {});
      await until("it is back", isAt(`${bed.site.here}/`));
    });
    expect(JSON.stringify(outcome)).toMatch(/page_not_found|target_changed|"filled","filled"/);
    const isFilled = JSON.stringify(outcome).includes("filled");
    expect(await valuesOf(client)).toEqual(isFilled ? { user: "secret-1", password: "secret-2" } : {});
  });

  test("is not filled where it takes another address without a navigation", async () => {
    const outcome = await filled({ text: "Page.createIsolatedWorld", at: 1 }, () =>
      client.evaluate(`history.pushState(0, "", "/step-2")`, session),
    );
    expect(outcome).toEqual({ kind: "refused", why: "page_not_found" });
    expect(await valuesOf(client)).toEqual({});
  });
});
