import { describe, expect, test } from "vitest";
import type { Params } from "../../../src/gateway/cdp/command.js";
import { defaultGate } from "../../../src/gateway/gates/default-gate.js";
import { isWithin } from "../../../src/gateway/gates/file-commands.js";
import { makeGate, pass } from "../../../src/gateway/gates/gate.js";

const directories = { downloads: "/b/1/downloads", uploads: "/b/1/uploads", temporary: "/b/1/temporary" };
const judge = (method: string, params: Params = {}) =>
  defaultGate({ id: 1, method, params }, { directories });

describe("paths", () => {
  test.each([
    "/b/1/uploads/a",
    "/b/1/uploads",
    "/b/1/uploads/",
    "/b/1/uploads/x/../a",
    "/b/1/downloads/../uploads/a",
    "/b/1//uploads/./a",
  ])("%s lies within /b/1/uploads", (path) => expect(isWithin(path, "/b/1/uploads")).toBe(true));

  test.each([
    "",
    "a",
    "uploads/a",
    "/etc/passwd",
    "/b/1/uploadsx/a",
    "/b/1/uploads/../profile/a",
    "/b/1/uploads/../../2/uploads/a",
    "/b/1/uploads/\0/../../x",
    "/",
  ])("%j does not", (path) => expect(isWithin(path, "/b/1/uploads")).toBe(false));
});

describe("the gate refuses", () => {
  test.each<[string, Params]>([
    ["Page.navigate", { url: "file:///etc/passwd" }],
    ["Target.createTarget", { url: "view-source:file:///etc/passwd" }],
    ["Network.loadNetworkResource", { url: "file:///etc/passwd" }],
    ["Target.createTarget", { url: "devtools://devtools/bundled/inspector.html" }],
    ["Page.navigate", { url: "chrome://inspect" }],
    ["Fetch.continueRequest", { requestId: "1", url: "file:///etc/passwd" }],
    ["PWA.install", { manifestId: "x", installUrlOrBundleUrl: "file:///x" }],
    ["DOM.setFileInputFiles", { files: ["/b/1/uploads/a", "/etc/passwd"] }],
    ["DOM.setFileInputFiles", { files: ["/b/2/uploads/a"] }],
    ["DOM.setFileInputFiles", { files: ["/b/1/profile/Cookies"] }],
    ["DOM.setFileInputFiles", { files: "/etc/passwd" }],
    ["Input.dispatchDragEvent", { type: "drop", data: { items: [], files: ["/etc/passwd"] } }],
    ["PWA.launchFilesInApp", { manifestId: "x", files: ["/etc/passwd"] }],
    ["Extensions.loadUnpacked", { path: "/etc" }],
    ["Extensions.loadUnpacked", { path: "/b/1/uploads/extension" }],
    ["Browser.crash", {}],
    ["Browser.executeBrowserCommand", { commandId: "openTabSearch" }],
    ["PWA.openCurrentPageInApp", { manifestId: "x" }],
    ["Page.navigate", { url: "mailto:a@b.c" }],
    ["Browser.crashGpuProcess", {}],
    ["Target.exposeDevToolsProtocol", { targetId: "x" }],
  ])("%s %j", (method, params) => expect(judge(method, params).kind).toBe("refuse"));
});

describe("the gate passes unchanged", () => {
  test.each<[string, Params]>([
    ["Page.navigate", { url: "https://example.com/" }],
    ["Page.navigate", {}],
    ["Runtime.evaluate", { expression: "'file:///etc/passwd'" }],
    ["DOM.setFileInputFiles", { files: ["/b/1/uploads/a", "/b/1/downloads/b"] }],
    ["DOM.setFileInputFiles", { files: [] }],
    ["Input.dispatchDragEvent", { type: "drop", data: { items: [] } }],
    ["Browser.setDownloadBehavior", { behavior: "deny" }],
    ["Browser.setDownloadBehavior", { behavior: "allow", downloadPath: "/b/1/downloads/mine" }],
    ["Network.setCookie", { name: "a", value: "b", url: "https://a.b", path: "/" }],
  ])("%s %j", (method, params) => {
    expect(judge(method, params)).toEqual({ kind: "pass", command: { id: 1, method, params } });
  });
});

test.each(["Browser.setDownloadBehavior", "Page.setDownloadBehavior"])(
  "%s to the default is to the session's downloads",
  (method) =>
    expect(judge(method, { behavior: "default", eventsEnabled: true })).toMatchObject({
      kind: "pass",
      command: { params: { behavior: "allow", downloadPath: directories.downloads, eventsEnabled: true } },
    }),
);

test.each(["Browser.setDownloadBehavior", "Page.setDownloadBehavior"])(
  "%s has its directory replaced by the session's own",
  (method) => {
    const params = {
      behavior: "allowAndName",
      browserContextId: "c",
      downloadPath: "/home/me/downloads",
      eventsEnabled: true,
    };
    expect(judge(method, params)).toEqual({
      kind: "pass",
      command: { id: 1, method, params: { ...params, downloadPath: directories.downloads } },
    });
  },
);

describe("a command carried by Target.sendMessageToTarget", () => {
  const carry = (message: unknown): Params => ({
    sessionId: "x",
    message: typeof message === "string" ? message : JSON.stringify(message),
  });
  const carried = (method: string, params: Params = {}, more: object = {}) =>
    carry({ id: 7, method, params, ...more });

  test("goes on as it was judged, serialised again", () => {
    expect(
      judge(
        "Target.sendMessageToTarget",
        carry('{ "params": {"expression":"\\u0031"}, "method": "Runtime.evaluate", "id": 7 }'),
      ),
    ).toEqual({
      kind: "pass",
      command: {
        id: 1,
        method: "Target.sendMessageToTarget",
        params: {
          sessionId: "x",
          message: '{"id":7,"method":"Runtime.evaluate","params":{"expression":"1"}}',
        },
      },
    });
    const rewritten = judge(
      "Target.sendMessageToTarget",
      carried("Page.setDownloadBehavior", { behavior: "allow", downloadPath: "/home/me" }),
    );
    expect(rewritten).toMatchObject({
      kind: "pass",
      command: { params: { message: expect.stringContaining(directories.downloads) as string } },
    });
  });

  test.each<[string, Params]>([
    ["with a proxy of its own", carried("Target.createBrowserContext", { proxyServer: "direct://" })],
    ["that leads past the proxy", carried("Target.setRemoteLocations", { locations: [] })],
    ["that opens a file", carried("Page.navigate", { url: "file:///etc/passwd" })],
    ["that hands CDP to a page", carried("Target.exposeDevToolsProtocol", { targetId: "x" })],
    [
      "that carries one",
      carried("Target.sendMessageToTarget", carried("Target.createBrowserContext", { proxyServer: "" })),
    ],
    ["that would end the browser", carried("Browser.close")],
    ["that would close a page unseen", carried("Page.close")],
    ["that would close a target unseen", carried("Target.closeTarget", { targetId: "x" })],
    ["that attaches unseen", carried("Target.attachToTarget", { targetId: "x" })],
    [
      "that attaches unseen by itself",
      carried("Target.setAutoAttach", { autoAttach: true, waitForDebuggerOnStart: true, flatten: false }),
    ],
    ["that makes a flat session", carried("Target.attachToTarget", { targetId: "x", flatten: true })],
    [
      "that makes flat sessions by itself",
      carried("Target.setAutoAttach", { autoAttach: true, waitForDebuggerOnStart: false, flatten: true }),
    ],
    ["for another session", carried("Runtime.evaluate", {}, { sessionId: "y" })],
    ["with a key twice", carry('{"id":7,"method":"Runtime.evaluate","method":"Browser.crash"}')],
    ["that is no JSON", carry("{")],
    ["that is none", carry("{}")],
  ])("%s is refused", (_what, params) =>
    expect(judge("Target.sendMessageToTarget", params).kind).toBe("refuse"),
  );

  test("whose message is no text is refused", () => {
    expect(judge("Target.sendMessageToTarget", { sessionId: "x", message: { id: 7 } }).kind).toBe("refuse");
  });
});

test("Browser.close is answered and disconnects the client", () => {
  expect(judge("Browser.close")).toEqual({ kind: "answer", result: {}, andDisconnect: true });
});

test("a rule sees what the rule before it has rewritten, and none is asked after a refusal", () => {
  const seen: unknown[] = [];
  const gate = makeGate([
    () => ({ kind: "rewrite", params: { step: 1 } }),
    ({ params }) => (seen.push(params), pass),
    ({ method }) => (method === "No.no" ? { kind: "refuse", message: "no" } : pass),
    () => (seen.push("last"), pass),
  ]);
  expect(gate({ id: 1, method: "No.no", params: {} }, { directories })).toEqual({
    kind: "refuse",
    message: "no",
  });
  expect(seen).toEqual([{ step: 1 }]);
});
