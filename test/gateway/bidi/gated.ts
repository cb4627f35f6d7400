/**
 * Commands of WebDriver BiDi that name a file, an address, a proxy, an extension or a command of CDP:
 * gates.test.ts tries each of them.
 */
export const gated = [
  "browser.createUserContext",
  "browser.setDownloadBehavior",
  "browsingContext.navigate",
  "goog:cdp.sendCommand",
  "input.setFiles",
  "network.continueRequest",
  "webExtension.install",
] as const;
export type Gated = (typeof gated)[number];
