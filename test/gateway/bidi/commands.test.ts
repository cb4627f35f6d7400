import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { gated } from "./gated.js";

const mapper = join(import.meta.dirname, "../../../node_modules/chromium-bidi/out/Default/gen/src");
const textOf = (path: string): string => readFileSync(join(mapper, path), "utf8");

/**
 * Every command of WebDriver BiDi that the installed mapper knows, by who stands between it and harm. Whoever
 * adds one has asked what it may make the browser read, write, load, connect to or leave behind.
 */
const judged: Readonly<Record<string, readonly string[]>> = {
  /** The session is ours (conversation.ts). */
  answered: ["browser.close", "session.end", "session.new", "session.status"],
  gated,
  /** The mapper knows the name alone, or answers that it is not carried out. */
  unsupported: [
    "browsingContext.setBypassCSP",
    "browsingContext.startScreencast",
    "browsingContext.stopScreencast",
  ],
  /** It moves pages, input, emulation and storage of the client's own browser. */
  harmless: [
    "bluetooth.disableSimulation",
    "bluetooth.handleRequestDevicePrompt",
    "bluetooth.simulateAdapter",
    "bluetooth.simulateAdvertisement",
    "bluetooth.simulateCharacteristic",
    "bluetooth.simulateCharacteristicResponse",
    "bluetooth.simulateDescriptor",
    "bluetooth.simulateDescriptorResponse",
    "bluetooth.simulateGattConnectionResponse",
    "bluetooth.simulateGattDisconnection",
    "bluetooth.simulatePreconnectedPeripheral",
    "bluetooth.simulateService",
    "browser.getClientWindows",
    "browser.getUserContexts",
    "browser.removeUserContext",
    "browser.setClientWindowState",
    "browsingContext.activate",
    "browsingContext.captureScreenshot",
    "browsingContext.close",
    "browsingContext.create",
    "browsingContext.getTree",
    "browsingContext.handleUserPrompt",
    "browsingContext.locateNodes",
    "browsingContext.print",
    "browsingContext.reload",
    "browsingContext.setViewport",
    "browsingContext.traverseHistory",
    "digitalCredentials.setVirtualWalletBehavior",
    "emulation.setForcedColorsModeThemeOverride",
    "emulation.setGeolocationOverride",
    "emulation.setLocaleOverride",
    "emulation.setNetworkConditions",
    "emulation.setScreenOrientationOverride",
    "emulation.setScreenSettingsOverride",
    "emulation.setScriptingEnabled",
    "emulation.setScrollbarTypeOverride",
    "emulation.setTimezoneOverride",
    "emulation.setTouchOverride",
    "emulation.setUserAgentOverride",
    "goog:cdp.getSession",
    "goog:cdp.resolveRealm",
    "input.performActions",
    "input.releaseActions",
    "network.addDataCollector",
    "network.addIntercept",
    "network.continueResponse",
    "network.continueWithAuth",
    "network.disownData",
    "network.failRequest",
    "network.getData",
    "network.provideResponse",
    "network.removeDataCollector",
    "network.removeIntercept",
    "network.setCacheBehavior",
    "network.setExtraHeaders",
    "permissions.setPermission",
    "script.addPreloadScript",
    "script.callFunction",
    "script.disown",
    "script.evaluate",
    "script.getRealms",
    "script.removePreloadScript",
    "session.subscribe",
    "session.unsubscribe",
    "storage.deleteCookies",
    "storage.getCookies",
    "storage.setCookie",
    "userAgentClientHints.setClientHintsOverride",
    "webExtension.uninstall",
  ],
};

test("each command that the installed mapper knows was judged", () => {
  const known = [...textOf("bidiMapper/CommandProcessor.js").matchAll(/^ +case '([\w:.]+)':/gm)];
  expect(known.map(([, name]) => name).toSorted()).toEqual(Object.values(judged).flat().toSorted());
});
