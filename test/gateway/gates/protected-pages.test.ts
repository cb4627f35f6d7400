import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { CdpSession } from "../../../src/gateway/cdp/sessions.js";
import { CdpSessions } from "../../../src/gateway/cdp/sessions.js";
import { ProtectedTargets } from "../../../src/gateway/cdp/protected-targets.js";
import { readsPage, tellsOfPage } from "../../../src/gateway/gates/protected-pages.js";

/** Each command of the protocol (judged-commands.test.ts holds the list against Chromium), and its class. */
const rows = readFileSync(join(import.meta.dirname, "judged-commands.txt"), "utf8")
  .split("\n")
  .filter((line) => line !== "" && !line.startsWith("#"))
  .map((line) => line.split(" "))
  .map(([name = "", , , kind = ""]) => [name, kind] as const);

test("every command of the protocol is in one of two classes", () => {
  expect(rows.length).toBeGreaterThan(600);
  expect(rows.filter(([, kind]) => kind !== "open" && kind !== "kept")).toEqual([]);
});

test("where a page is protected, the commands that could show its fields are refused, and those alone", () => {
  expect(rows.filter(([method, kind]) => readsPage({ method, params: {} }) !== (kind === "kept"))).toEqual(
    [],
  );
});

test.each([
  "Accessibility.getFullAXTree",
  "DOM.getDocument",
  "DOM.getOuterHTML",
  "DOMSnapshot.captureSnapshot",
  "Debugger.evaluateOnCallFrame",
  "HeapProfiler.takeHeapSnapshot",
  "Network.getRequestPostData",
  "Network.getResponseBody",
  "Page.captureScreenshot",
  "Page.captureSnapshot",
  "Page.printToPDF",
  "Page.startScreencast",
  "Runtime.callFunctionOn",
  "Runtime.evaluate",
  "Runtime.getProperties",
  "Future.readsEverything",
])("%s reads a page", (method) => {
  expect(readsPage({ method, params: {} })).toBe(true);
});

test("an open command that is given a script for this document reads it, too", () => {
  const on = "Page.addScriptToEvaluateOnNewDocument";
  expect(readsPage({ method: on, params: { source: "1", runImmediately: true } })).toBe(true);
  expect(readsPage({ method: on, params: { source: "1" } })).toBe(true);
  for (const source of ["", "//# sourceURL=pptr:internal", " // one\n// two\n"])
    expect(readsPage({ method: on, params: { source } })).toBe(false);
  expect(readsPage({ method: on, params: { source: "//\u2028leak()" } })).toBe(true);
  for (const url of ["javascript:1", " JavaScript:1", "java\nscript:1", "j a v a script:1"])
    expect(readsPage({ method: "Page.navigate", params: { url } })).toBe(true);
  expect(readsPage({ method: "Page.navigate", params: { url: "https://javascript.example/" } })).toBe(false);
});

test("what is no text where one belongs is judged like any other, and nothing of it is called", () => {
  for (const value of [{ toString: 1 }, { toString: 1, valueOf: 1 }, [{ toString: null }], 7, null]) {
    expect(readsPage({ method: "Page.navigate", params: { url: value } })).toBe(false);
    const on = "Page.addScriptToEvaluateOnNewDocument";
    expect(readsPage({ method: on, params: { source: value } })).toBe(true);
  }
});

test("a script of comments without number is judged line by line, not in exponential time", () => {
  const source = "// ".repeat(100_000);
  const on = "Page.addScriptToEvaluateOnNewDocument";
  expect(readsPage({ method: on, params: { source } })).toBe(false);
  expect(readsPage({ method: on, params: { source: `${source}\nleak()` } })).toBe(true);
});

test("one that is too long to be looked into here is taken for the worse", () => {
  const written = new Uint8Array();
  expect(readsPage({ method: "Page.navigate", params: {}, written })).toBe(true);
  expect(readsPage({ method: "Page.addScriptToEvaluateOnNewDocument", params: {}, written })).toBe(true);
  expect(readsPage({ method: "Fetch.continueRequest", params: {}, written })).toBe(true);
  expect(readsPage({ method: "Fetch.continueResponse", params: {}, written })).toBe(false);
});

test("a client answers no request of the page, nor has it answered from elsewhere: it could be by a script", () => {
  const method = "Fetch.continueRequest";
  expect(readsPage({ method, params: { requestId: "1", headers: [] } })).toBe(false);
  expect(readsPage({ method, params: { requestId: "1", url: "https://elsewhere.example/" } })).toBe(true);
  expect(readsPage({ method: "Fetch.fulfillRequest", params: {} })).toBe(true);
});

test("events that tell of the document are kept back but for that of the next one", () => {
  for (const event of [
    "DOM.attributeModified",
    "DOM.setChildNodes",
    "Page.screencastFrame",
    "Accessibility.nodesUpdated",
  ])
    expect(tellsOfPage(event)).toBe(true);
  for (const event of ["DOM.documentUpdated", "Page.frameNavigated", "Target.attachedToTarget"])
    expect(tellsOfPage(event)).toBe(false);
});

describe("a protected page", () => {
  const owner = {};
  const fill = {};
  const bed = () => {
    const sessions = new CdpSessions<object>();
    const root = sessions.addRoot({ id: "root", owner });
    sessions.addChild(root, { id: "page", target: "the page" });
    sessions.addChild(root, { id: "other", target: "another page" });
    const find = (id: string): CdpSession<object> => sessions.find(id) ?? root;
    sessions.addChild(find("page"), { id: "worker", target: "a worker" });
    sessions.addChild(root, { id: "frame", target: "a frame" });
    sessions.addChild(root, { id: "extension", target: "an extension's worker" });
    const protectedTargets = new ProtectedTargets({
      isOfExtension: (target) => target === "an extension's worker",
      sessions: () => sessions.all(),
    });
    protectedTargets.add("the page", ["the page", "a frame"], fill);
    const why = (id: string, method: string, params = {}): string | undefined =>
      protectedTargets.whyRefused(sessions, find(id), { id: 1, method, params });
    return { protectedTargets, why, find };
  };

  test("is not read on its own sessions, on its frames' and on those that were attached through it", () => {
    const { why } = bed();
    for (const id of ["page", "frame", "worker"])
      expect(why(id, "Runtime.evaluate")).toMatch(
        /^Runtime\.evaluate is refused until the page's next navigation/,
      );
    expect(why("other", "Runtime.evaluate")).toBeUndefined();
    expect(why("page", "Input.dispatchMouseEvent")).toBeUndefined();
  });

  test("is not read by a message that another carries, nor by what shows all pages", () => {
    const { why } = bed();
    const carrier = "Target.sendMessageToTarget";
    expect(why("root", carrier, { sessionId: "page", message: "{}" })).toContain("protect_filled");
    expect(why("root", carrier, { targetId: "the page", message: "{}" })).toContain("protect_filled");
    expect(why("root", carrier, { sessionId: "other", message: "{}" })).toBeUndefined();
    expect(why("root", "Tracing.start")).toContain("protect_filled");
    expect(why("root", "Target.getTargets")).toBeUndefined();
  });

  test("has no frame of it shown another document, and nothing heard of it in messages", () => {
    const { protectedTargets, why, find } = bed();
    const url = "https://shop.example/";
    expect(why("page", "Page.navigate", { url })).toBeUndefined();
    expect(why("page", "Page.navigate", { url, frameId: "the page" })).toBeUndefined();
    expect(why("page", "Page.navigate", { url, frameId: "a frame" })).toContain("protect_filled");
    expect(why("frame", "Page.navigate", { url })).toContain("protect_filled");
    expect(why("other", "Page.navigate", { url })).toBeUndefined();
    expect(protectedTargets.hides(find("root"), "Target.receivedMessageFromTarget")).toBe(true);
    expect(protectedTargets.hides(find("other"), "Target.receivedMessageFromTarget")).toBe(false);
  });

  test("is not read by scripts of an extension, which run others in every page", () => {
    const { protectedTargets, why } = bed();
    expect(why("extension", "Runtime.evaluate")).toMatch(/an extension's scripts .*protect_filled/);
    const carried = { targetId: "an extension's worker", message: "{}" };
    expect(why("root", "Target.sendMessageToTarget", carried)).toContain("protect_filled");
    expect(why("extension", "Runtime.enable")).toBeUndefined();
    protectedTargets.remove("the page");
    expect(why("extension", "Runtime.evaluate")).toBeUndefined();
  });

  test("stays one where another fill has filled the document that it shows", () => {
    const { protectedTargets, why } = bed();
    const next = {};
    protectedTargets.add("the page", ["the page"], next);
    protectedTargets.remove("the page", fill);
    expect(why("page", "Runtime.evaluate")).toBeDefined();
    protectedTargets.remove("the page", next);
    expect(why("page", "Runtime.evaluate")).toBeUndefined();
  });

  test("is one no more once it shows another document", () => {
    const { protectedTargets, why, find } = bed();
    expect(protectedTargets.hides(find("page"), "DOM.attributeModified")).toBe(true);
    protectedTargets.remove("a frame");
    expect(why("page", "Runtime.evaluate")).toBeDefined();
    protectedTargets.remove("the page");
    for (const id of ["page", "frame", "worker"]) expect(why(id, "Runtime.evaluate")).toBeUndefined();
    expect(protectedTargets.hides(find("page"), "DOM.attributeModified")).toBe(false);
  });
});
