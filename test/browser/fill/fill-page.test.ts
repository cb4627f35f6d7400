import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { totpCodeOf } from "../../../src/base/crypto/totp.js";
import type { Chromium } from "../../../src/browser/chromium.js";
import type { PageFill } from "../../../src/spec/page-fill.js";
import { DrivenClock } from "../../support/driven-clock.js";
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
const both = { user: "secret-1", password: "secret-2" };
const done = { status: "completed", outcomes: ["filled", "filled"] };
/** The empty document that is there before it is complete as well. */
const isOther = "document.readyState === 'complete' && location.pathname === '/other'";
const refusedAs = (why: string): object => ({ kind: "refused", why });

describe.each(engines)("%s", (_, spec) => {
  let chromium: Chromium;
  let client: PipeClient;
  let session: string;
  let page: string;
  beforeAll(async () => {
    chromium = await bed.launch(spec);
    client = new PipeClient(chromium);
    page = (await client.targets())[0]?.targetId ?? "";
  });
  beforeEach(async () => {
    session = await client.attach(page);
    bed.site.serve({ body: login, others: { "/other": login } });
    await client.open("about:blank", session);
    await client.open(`${bed.site.here}/?step=1#form`, session);
  });
  afterEach(async () => {
    const others = (await client.targets()).filter(({ targetId }) => targetId !== page);
    for (const { targetId } of others) await client.send("Target.closeTarget", { targetId });
    await until("one page is left", async () => (await client.targets()).length === 1);
    await client.send("Target.detachFromTarget", { sessionId: session });
  });

  const fill = async (over: Partial<PageFill> = {}): Promise<object> =>
    shorten(await fillBy(chromium.pipe, { ...fillOf({ fields }), ...over }));
  const values = (): Promise<Record<string, string>> => valuesOf(client);

  test("a page is named by its whole address, with query and fragment", async () => {
    for (const page_url of [
      `${bed.site.here}/`,
      `${bed.site.here}/?step=1`,
      `${bed.site.here}/?step=1#other`,
      "about:blank",
    ])
      expect(await fill({ page_url })).toEqual(refusedAs("page_not_found"));
    expect(await values()).toEqual({});
    expect(await fill({ page_url: `${bed.site.here}/?step=1#form` })).toEqual(done);
    expect(await values()).toEqual(both);
  });

  test("of two pages one has to be named, and two of one address cannot be told apart", async () => {
    const open = (url: string) => client.send("Target.createTarget", { url });
    const { targetId: other } = await open(`${bed.site.here}/other`);
    await until("it is open", async () => (await client.targets()).some(({ url }) => url.endsWith("/other")));
    expect(await fill()).toEqual(refusedAs("ambiguous_page"));
    const otherSession = await client.attach(String(other));
    await until("it is there", () => client.evaluate(isOther, otherSession));
    await client.send("Target.detachFromTarget", { sessionId: otherSession });
    expect(await fill({ page_url: `${bed.site.here}/other` })).toEqual(done);
    expect(await client.evaluate("user.value + password.value", session)).toBe("");
    await open(`${bed.site.here}/other`);
    await until(
      "it is open",
      async () => (await client.targets()).filter(({ url }) => url.endsWith("/other")).length === 2,
    );
    expect(await fill({ page_url: `${bed.site.here}/other` })).toEqual(refusedAs("ambiguous_page"));
  });

  test("what is no selector is refused before anything is written", async () => {
    expect(
      await fill(
        fillOf({
          fields: [
            ["#user", "secret-1"],
            ["input[", "secret-2"],
          ],
        }),
      ),
    ).toEqual(refusedAs("invalid_selector"));
    expect(await values()).toEqual({});
  });

  test("values go where they may, and nowhere else: the page and the frame are both asked", async () => {
    expect(await fill({ allowed_origins: ["https://a.example", bed.site.other] })).toEqual(
      refusedAs("destination_denied"),
    );
    bed.site.serve({ body: `<iframe src="{other}/other"></iframe>`, others: { "/other": login } });
    await client.open(`${bed.site.here}/`, session);
    for (const allowed of [[bed.site.here], [bed.site.other], []])
      expect(await fill({ allowed_origins: allowed })).toEqual(refusedAs("destination_denied"));
    expect(await values()).toEqual({});
    expect(await fill({ allowed_origins: [bed.site.here, bed.site.other] })).toEqual(done);
    expect(await values()).toEqual(both);
  });

  test("a code is computed just before it is written; one with under 3 s left is not used", async () => {
    const seed = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";
    const clock = new DrivenClock();
    await clock.advance(27_500);
    const filling = fillBy(
      chromium.pipe,
      fillOf({
        fields: [
          ["#user", "secret-1"],
          ["#password", { kind: "totp", seed }],
        ],
      }),
      clock,
    );
    await until("the next code is waited for", () => clock.pending === 1);
    expect(await values()).toEqual({ user: "secret-1" });
    await clock.advance(2500);
    expect(shorten(await filling)).toEqual(done);
    const code = totpCodeOf(Buffer.from("12345678901234567890"), 30_000);
    expect(await values()).toEqual({ user: "secret-1", password: code });
  });

  test("a page that takes its time to answer is not given a code that is over by then", async () => {
    const seed = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";
    const clock = new DrivenClock();
    await clock.advance(20_000);
    const pipe = pausedPipe(chromium.pipe, "this.isSame(", () => clock.advance(8000));
    const filling = fillBy(
      pipe,
      fillOf({ fields: [["#user", { kind: "totp", seed }]], timeoutMs: 20_000 }),
      clock,
    );
    await until("the next code is waited for", () => clock.pending === 1);
    expect(await values()).toEqual({});
    await clock.advance(2000);
    expect(shorten(await filling)).toEqual({ status: "completed", outcomes: ["filled"] });
    expect(await values()).toEqual({ user: totpCodeOf(Buffer.from("12345678901234567890"), 30_000) });
  });

  test("nor one of the step before", async () => {
    const seed = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";
    const clock = new DrivenClock();
    await clock.advance(20_000);
    const pipe = pausedPipe(chromium.pipe, "this.isSame(", () => clock.advance(15_000));
    const given = fillOf({ fields: [["#user", { kind: "totp", seed }]], timeoutMs: 25_000 });
    expect(shorten(await fillBy(pipe, given, clock))).toMatchObject({ status: "completed" });
    expect(await values()).toEqual({ user: totpCodeOf(Buffer.from("12345678901234567890"), 35_000) });
  });

  test("a code that could not be waited for within the limit is used as it is", async () => {
    const clock = new DrivenClock();
    await clock.advance(29_000);
    const given = fillOf({
      fields: [["#user", { kind: "totp", seed: "gezdgnbvgy3tqojqgezdgnbvgy3tqojq" }]],
      timeoutMs: 3900,
    });
    expect(shorten(await fillBy(chromium.pipe, given, clock))).toMatchObject({ status: "completed" });
    expect(await values()).toEqual({ user: totpCodeOf(Buffer.from("12345678901234567890"), 29_000) });
  });

  test("a page that is closed before the write is not written, one that goes in its turn is not known", async () => {
    const { targetId } = await client.send("Target.createTarget", { url: `${bed.site.here}/other` });
    const other = await client.attach(String(targetId));
    await until("it is there", () => client.evaluate(isOther, other));
    const pipe = pausedPipe(chromium.pipe, "this.write(", async () => {
      await client.send("Target.closeTarget", { targetId });
      await until("it is gone", async () => (await client.targets()).length === 1);
    });
    const outcome = await fillBy(pipe, { ...fillOf({ fields }), page_url: `${bed.site.here}/other` });
    expect(shorten(outcome)).toEqual({
      status: "failed",
      outcomes: ["failed target_changed", "not_attempted"],
    });
  });

  test("a lease that is cut ends it: what was under way is unknown", async () => {
    const cut = new AbortController();
    const answered = chromium.fillPage(fillOf({ fields }), {
      signal: cut.signal,
      hold: () => {
        cut.abort(new Error("released"));
        return () => {};
      },
    });
    expect(shorten(await answered)).toEqual({
      status: "failed",
      outcomes: ["failed execution_failed", "not_attempted"],
    });
  });

  test("no message to Chromium has a value in a function's text, and it is in one message only", async () => {
    const sent: string[] = [];
    const pipe = {
      ...chromium.pipe,
      send(text: string) {
        sent.push(text);
        chromium.pipe.send(text);
      },
    };
    expect(shorten(await fillBy(pipe, fillOf({ fields })))).toEqual(done);
    const withValues = sent.filter((text) => text.includes("secret-"));
    expect(withValues).toHaveLength(2);
    for (const text of withValues) {
      const { params } = JSON.parse(text) as { params: { functionDeclaration: string } };
      expect(params.functionDeclaration).not.toContain("secret-");
    }
  });
});
