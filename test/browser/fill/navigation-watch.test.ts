import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import { Cdp } from "../../../src/browser/cdp/cdp.js";
import { type Frame, summarize, wholeOf } from "../../../src/browser/cdp/frame.js";
import type { Pipe } from "../../../src/browser/cdp/pipe.js";
import type { Chromium } from "../../../src/browser/chromium.js";
import { watchNavigation } from "../../../src/browser/fill/navigation-watch.js";
import { PipeClient } from "../../support/browser/chromium-client.js";
import { engines } from "../../support/browser/chromium-kinds.js";
import { until } from "../../support/browser/chromium-until.js";
import { pausedPipe } from "../../support/browser/fill/fill-bed.js";
import { useFilledChromium } from "../../support/browser/fill/filled-chromium.js";

const bed = useFilledChromium();
beforeAll(() =>
  bed.site.serve({ body: `<input id="user" name="user">`, others: { "/next": "next", "/last": "last" } }),
);

const soon = <T>(what: string, holds: () => Promise<T> | T) => until(what, holds, 30_000);

/** A pipe whose commits, once it has begun, are told after the first answer to a clearing of the history. */
function lateCommits(pipe: Pipe): { readonly pipe: Pipe; begin(): void; readonly isTold: boolean } {
  const seen = { hasBegun: false, isTold: false, clearing: undefined as number | undefined };
  return {
    begin: () => void (seen.hasBegun = true),
    get isTold() {
      return seen.isTold;
    },
    pipe: {
      ...pipe,
      send(message) {
        const { id, method } = JSON.parse(message) as { id: number; method: string };
        if (seen.hasBegun && method === "Page.resetNavigationHistory") seen.clearing = id;
        pipe.send(message);
      },
      onFrame(listener) {
        const held: Frame[] = [];
        return pipe.onFrame((frame) => {
          const { id, method } = summarize(frame);
          if (method === "Page.frameNavigated" && seen.hasBegun && !seen.isTold) return void held.push(frame);
          listener(frame);
          if (id === undefined || id !== seen.clearing || seen.isTold) return;
          if (wholeOf(frame).includes(`"error"`)) return;
          // What waits for the answer goes on first.
          setImmediate(() => {
            for (const one of held.splice(0)) listener(one);
            seen.isTold = true;
          });
        });
      },
    },
  };
}

describe.each(engines)("%s", (name, spec) => {
  let chromium: Chromium;
  let client: PipeClient;
  let session: string;
  let page: string;
  beforeAll(async () => {
    chromium = await bed.launch(spec);
    client = new PipeClient(chromium);
    page = (await client.targets())[0]?.targetId ?? "";
    session = await client.attach(page);
  });
  beforeEach(async () => {
    await client.open("about:blank", session);
    await client.open(`${bed.site.here}/`, session);
    await client.evaluate(`user.value = "secret-1"`, session);
  });

  /** Watches, and does something when the history is about to be cleared for the first time. */
  async function watched(
    before: () => Promise<unknown>,
    from: Pipe = chromium.pipe,
  ): Promise<{ tries: number; settled: number; isOver: boolean }> {
    const seen = { tries: 0, settled: 0, isOver: false };
    const pipe = pausedPipe(from, "Page.resetNavigationHistory", before);
    const counted = {
      ...pipe,
      send(message: string) {
        seen.tries += Number(message.includes("Page.resetNavigationHistory"));
        pipe.send(message);
      },
    };
    const around = {
      hasClients: () => true,
      hold: () => () => void (seen.settled += 1),
      over: () => void (seen.isOver = true),
    };
    await watchNavigation({ cdp: new Cdp(counted, systemClock), clock: systemClock }, { page, ...around });
    return seen;
  }
  const shown = (): Promise<unknown> =>
    client.evaluate(`location.pathname + (self.user?.value ?? "")`, session);
  const countEntries = async (): Promise<number> =>
    ((await client.send("Page.getNavigationHistory", {}, session))["entries"] as unknown[]).length;

  test("a page that is gone back to before its history is clear is still the one that was filled", async () => {
    const seen = await watched(async () => {
      // The page may go before it has answered.
      await client.evaluate("history.back()", session).catch(() => {});
      await soon("it is back", async () => (await shown()) === "/secret-1");
    });
    await client.send("Page.navigate", { url: `${bed.site.here}/next` }, session);
    await soon("it is back, and its history is clear", async () => (await countEntries()) === 1);
    expect([await shown(), seen.isOver]).toEqual(["/secret-1", false]);
    await client.open(`${bed.site.here}/last`, session);
    await soon("it is over", () => seen.isOver);
    expect(await countEntries()).toBe(1);
  });

  test("a page that is gone back to is told of after its history is clear, and is still the one that was filled", async () => {
    const late = lateCommits(chromium.pipe);
    const seen = await watched(async () => {
      late.begin();
      await client.evaluate("history.back()", session).catch(() => {});
      await soon("it is back", async () => (await shown()) === "/secret-1");
    }, late.pipe);
    await client.send("Page.navigate", { url: `${bed.site.here}/next` }, session);
    await soon("its history is clear, and its commit told", () => late.isTold && seen.settled > 0);
    expect([await shown(), seen.isOver]).toEqual(["/secret-1", false]);
    await client.open(`${bed.site.here}/last`, session);
    await soon("it is over", () => seen.isOver);
  });

  test("one whose address is too long to be parsed is known again, and so is the next of such an address", async () => {
    const long = "x".repeat(17_000);
    await client.open(`${bed.site.here}/#${long}`, session);
    await client.evaluate(`user.value = "secret-1"`, session);
    const seen = await watched(async () => {
      await client.evaluate("history.back()", session).catch(() => {});
      await soon("it is back", async () => (await shown()) === "/secret-1");
    });
    await client.send("Page.navigate", { url: `${bed.site.here}/next` }, session);
    await soon("its history is clear", () => seen.settled > 0);
    expect([await shown(), seen.isOver]).toEqual(["/secret-1", false]);
    await client.send("Page.navigate", { url: `${bed.site.here}/last#${long}` }, session);
    await soon("it is over", () => seen.isOver);
  });

  test("the page before it, to which somebody goes back, is another", async () => {
    const seen = await watched(async () => {});
    await client.evaluate("history.back()", session).catch(() => {});
    await soon("it is over", () => seen.isOver);
    expect(await client.evaluate("location.href", session)).toBe("about:blank");
  });

  test("a navigation that is broken off leaves the next document shown, which is another", async () => {
    // Chromium with windows goes back without a request, which nobody can break off.
    const onwards = name === "headless-shell" ? "history.back()" : `location.href = "/last"`;
    const seen = await watched(async () => {
      client.events.length = 0;
      await client.send("Fetch.enable", { patterns: [{ urlPattern: "*" }] }, session);
      client.evaluate(onwards, session).catch(() => {});
      await soon("it is stopped", () => client.events.some(({ method }) => method === "Fetch.requestPaused"));
      await client.send("Page.stopLoading", {}, session);
      await client.send("Fetch.disable", {}, session);
    });
    await client.send("Page.navigate", { url: `${bed.site.here}/next` }, session);
    await soon("it is over", () => seen.isOver);
    expect(await shown()).toBe("/next");
  });

  /** Sets out for another document, whose request waits until the returned function is called. */
  async function setOut(): Promise<() => Promise<void>> {
    client.events.length = 0;
    await client.send("Fetch.enable", { patterns: [{ urlPattern: "*/last" }] }, session);
    client.evaluate(`location.href = "/last"`, session).catch(() => {});
    const paused = await soon("it is stopped", () =>
      client.events.find(({ method }) => method === "Fetch.requestPaused"),
    );
    const requestId = String(paused.params?.["requestId"]);
    return async () => {
      await client.send("Fetch.continueRequest", { requestId }, session);
      await client.send("Fetch.disable", {}, session);
    };
  }

  test("one that is gone back to, and sets out for another, is not left in the history", async () => {
    let goOn: (() => Promise<void>) | undefined;
    const seen = await watched(async () => {
      await client.evaluate("history.back()", session).catch(() => {});
      await soon("it is back", async () => (await shown()) === "/secret-1");
      goOn = await setOut();
    });
    await client.send("Page.navigate", { url: `${bed.site.here}/next` }, session);
    await (await soon("its history is about to be cleared", () => goOn && { goOn })).goOn();
    await client.open(`${bed.site.here}/last`, session);
    await soon("it is over", () => seen.isOver);
    expect([await shown(), await countEntries()]).toEqual(["/last", 1]);
  });

  test("another document is one at once, also while it waits for the next", async () => {
    let goOn = async (): Promise<void> => {};
    const seen = await watched(async () => void (goOn = await setOut()));
    await client.send("Page.navigate", { url: `${bed.site.here}/next` }, session);
    await soon("it is over", () => seen.isOver);
    await goOn();
  });

  test("a page that goes on at once to another document is one no more", async () => {
    const seen = await watched(() => client.open(`${bed.site.here}/last`, session));
    await client.send("Page.navigate", { url: `${bed.site.here}/next` }, session);
    await soon("it is over", () => seen.isOver);
    expect([await shown(), await countEntries()]).toEqual(["/last", 1]);
  });

  test("a dialog that the last client leaves behind, having heard nothing of it, holds no page up", async () => {
    let hasClients = true;
    const around = { hasClients: () => hasClients, hold: () => () => {}, over: () => {} };
    const cdp = new Cdp(chromium.pipe, systemClock);
    await watchNavigation({ cdp, clock: systemClock }, { page, ...around });
    client.events.length = 0;
    const answer = client.evaluate(`confirm("Really?")`, session);
    await soon("a dialog is open", () =>
      client.events.some(({ method }) => method === "Page.javascriptDialogOpening"),
    );
    hasClients = false;
    expect(await answer).toBe(false);
    await client.open(`${bed.site.here}/next`, session);
  });

  test("a page that keeps its history by a reload without end is not taken for another", async () => {
    const seen = await watched(async () => {
      await client.send("Fetch.enable", { patterns: [{ urlPattern: "*" }] }, session);
      const isStopped = (): boolean => client.events.some(({ method }) => method === "Fetch.requestPaused");
      // A reload in the very moment of a commit comes to nothing.
      for (let tries = 0; tries < 10 && !isStopped(); tries += 1) {
        client.send("Page.reload", {}, session).catch(() => {});
        await until("it is stopped", isStopped, 1000).catch(() => {});
      }
    });
    // While it waits for the reload Chromium asks the page nothing, so that nobody can see it loaded.
    await client.send("Page.navigate", { url: `${bed.site.here}/next` }, session);
    await soon("Chromium has refused for long", () => seen.tries > 82);
    expect(seen.isOver).toBe(false);
    await client.send("Fetch.disable", {}, session);
    // It is refused in the moment in which the document has come.
    await client.send("Page.stopLoading", {}, session).catch(() => {});
    await soon("it is over", () => seen.isOver);
    expect(await countEntries()).toBe(1);
  });
});
