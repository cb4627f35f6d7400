import type { LaunchSpec } from "../../../src/browser/chromium.js";

/** The three ways Chromium runs; what it promises, it promises in each. */
export const kinds: readonly (readonly [string, Partial<LaunchSpec>])[] = [
  ["headless-shell", { engine: "headless-shell", headless: true }],
  ["headless Chromium", { engine: "chromium", headless: true }],
  ["headful Chromium", { engine: "chromium", headless: false }],
];
