import type { LaunchSpec } from "../../../src/browser/chromium.js";

/** The three ways Chromium runs; what it promises, it promises in each. */
export const kinds: readonly (readonly [string, Partial<LaunchSpec>])[] = [
  ["headless-shell", { engine: "headless-shell", headless: true }],
  ["headless Chromium", { engine: "chromium", headless: true }],
  ["headful Chromium", { engine: "chromium", headless: false }],
];

/**
 * Its engines, each without a display: for what neither the daemon nor Chromium does otherwise where there
 * are windows. `BROWSER_KINDS=all` tries that in every kind.
 */
export const engines = kinds.filter(([, { headless }]) => headless || process.env["BROWSER_KINDS"] === "all");
