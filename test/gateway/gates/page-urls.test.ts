import { describe, expect, test } from "vitest";
import { processorMsOf } from "../../support/processor-time.js";
import {
  isClosedTarget,
  isFileUrl,
  isInternalPage,
  whyNotOpened,
} from "../../../src/gateway/gates/internal-pages.js";

const viewer = "mhjfbmdgcfjbbpaeojofohoefgiehjai";
const another = "abcdefghijklmnopabcdefghijklmnop";

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

  test("not one of sixteen million signs, and says so at once", async () => {
    const spentMs = await processorMsOf(() => {
      for (const part of ["blob:", "a:", "a", " "])
        expect(typeof whyNotOpened(part.repeat(2 ** 24 / part.length))).toBe(
          part === "a" || part === " " ? "undefined" : "string",
        );
    });
    expect(spentMs).toBeLessThan(5_000);
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
