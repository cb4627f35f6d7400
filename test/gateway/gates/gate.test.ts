import { describe, expect, test } from "vitest";
import type { Params } from "../../../src/gateway/cdp/command.js";
import { defaultGate } from "../../../src/gateway/gates/default-gate.js";
import { isWithin } from "../../../src/gateway/gates/file-commands.js";
import { makeGate, pass } from "../../../src/gateway/gates/gate.js";
import {
  isClosedTarget,
  isFileUrl,
  isInternalPage,
  whyNotOpened,
} from "../../../src/gateway/gates/internal-pages.js";

const viewer = "mhjfbmdgcfjbbpaeojofohoefgiehjai";
const another = "abcdefghijklmnopabcdefghijklmnop";
const directories = { downloads: "/b/1/downloads", uploads: "/b/1/uploads", temporary: "/b/1/temporary" };
const judge = (method: string, params: Params = {}) =>
  defaultGate({ id: 1, method, params }, { directories });

describe("file URLs", () => {
  test.each([
    "file:///etc/passwd",
    "FILE:///etc/passwd",
    "FiLe:/etc/passwd",
    " file:///etc/passwd",
    "\t\nfile:///x",
    "fi\nle:///x",
    "f\tile:\r///x",
    "\u0000file:///x",
    "\u0001 file:///x",
    "view-source:file:///x",
    "VIEW-SOURCE: file:///x",
    "view-source:view-source:file:///x",
    "filesystem:file:///x",
    "blob:file:///x",
    "\u00a0file:///x",
    "\ufefffile:///x",
    "file:",
    "file:relative",
  ])("%j is one", (url) => expect(isFileUrl(url)).toBe(true));

  test.each([
    "",
    "about:blank",
    "https://example.com/file:///x",
    "http://file/",
    "http://file:80/",
    "data:text/html,file:///x",
    "https://a.b/?u=file:///etc",
    "profile:x",
    "chrome://file",
    "javascript:location='file:///x'",
  ])("%j is none", (url) => expect(isFileUrl(url)).toBe(false));
});

describe("pages of the browser itself", () => {
  test.each([
    "chrome://inspect",
    "CHROME://quit",
    " chr\nome://version",
    "view-source:chrome://gpu",
    "chrome:version",
    "chrome-untrusted://print/",
    "devtools://devtools/bundled/inspector.html",
    "about:inspect",
    "about:blankx",
    "about:version?blank",
    "isolated-app://x/",
    "chrome-native://x",
    `chrome-extension://${viewer}/index.html`,
    `view-source:CHROME-extension://${viewer.toUpperCase()}`,
  ])("%j is one", (url) => expect(isInternalPage(url)).toBe(true));

  test.each([
    "",
    "about:blank",
    "about:blank#x",
    "about:blank?x",
    "about:srcdoc",
    "https://chrome/",
    "https://a.b/?u=chrome://inspect",
    "chrome-extension://x/a.html",
    `https://a.b/${viewer}`,
    `chrome-extension://${another}/?${viewer}`,
    "data:text/html,chrome://inspect",
    "chromes://x",
  ])("%j is none", (url) => expect(isInternalPage(url)).toBe(false));
});

describe("a client may have opened", () => {
  test.each([
    "",
    "relative",
    "//host",
    "about:blank",
    "https://a.b/",
    "HTTP:a",
    "ws://a",
    "data:text/html,chrome://inspect",
    "javascript:location='mailto:x'",
    "blob:https://a.b/1",
    "blob:null/1",
    "filesystem:https://a.b/temporary/x",
    "view-source:https://a.b/",
    `chrome-extension://${another}/a.html?b#c`,
    `view-source:chrome-extension://${another}`,
  ])("%j", (url) => expect(whyNotOpened(url)).toBeUndefined());

  test.each([
    "mailto:a@b.c",
    "ssh://x",
    "x-scheme-handler:1",
    "view-source:mailto:a",
    "blob:ssh:x",
    "externalfile:x",
    "content://x",
    "chromes://x",
    "chrome-error://chromewebdata/",
    "ftp://x",
    `chrome-extension://${viewer}/index.html`,
    `chrome-extension:/${viewer}/`,
    `chrome-extension:\\\\${viewer}/`,
    `chrome-extension://%6d${viewer.slice(1)}/`,
    `chrome-extension://x@${viewer}/`,
    `chrome-extension://${viewer}:80/`,
    `chrome-extension://${viewer}\\index.html`,
    `chrome-extension://\uff4d${viewer.slice(1)}/`,
    "chrome-extension://0f8fad5b-d9cb-469f-a165-70867728950e/a",
    ` blob: chrome-extension://${viewer}/1`,
  ])("not %j", (url) => expect(whyNotOpened(url)).toBeDefined());

  test("not one of sixteen million signs, and says so at once", () => {
    const began = performance.now();
    for (const part of ["blob:", "a:", "a", " "])
      expect(typeof whyNotOpened(part.repeat(2 ** 24 / part.length))).toBe(
        part === "a" || part === " " ? "undefined" : "string",
      );
    expect(performance.now() - began).toBeLessThan(5_000);
  });
});

test.each([
  ["a page of its own", { type: "page", url: "chrome://settings/" }, true],
  ["developer tools", { type: "page", url: "devtools://devtools/bundled/inspector.html" }, true],
  ["the viewer of PDFs", { type: "webview", url: `chrome-extension://${viewer}/index.html` }, true],
  ["the viewer in a frame", { type: "iframe", url: `chrome-extension://${viewer}/index.html` }, true],
  ["the viewer before it has an address", { type: "other", url: "" }, true],
  ["a new tab", { type: "page", url: "chrome://newtab/" }, false],
  ["the page of new tabs itself", { type: "page", url: "chrome://new-tab-page/" }, true],
  ["a page that could not be loaded", { type: "page", url: "chrome-error://chromewebdata/" }, false],
  ["a frame before it has an address", { type: "iframe", url: "" }, false],
  ["a page of an extension", { type: "other", url: `chrome-extension://${another}/panel.html` }, false],
])("clients are kept from %s or not: %j, %s", (_, target, isClosed) =>
  expect(isClosedTarget(target)).toBe(isClosed),
);

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
