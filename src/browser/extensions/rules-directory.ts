import { chmod } from "node:fs/promises";

/** Sticky: who may write here may add, and remove only what is its own. */
const sticky = 0o1777;

/**
 * Lets the browser write below an extension's directory, and change nothing of what lies there. Chromium
 * keeps its index of an extension's declarative rules in a `_metadata` of its own making, and refuses the
 * extension where it cannot, or where that is there already (Chromium 156, docs/chromium.md#extensions).
 */
export const makeRulesDirectory = (extension: string): Promise<void> => chmod(extension, sticky);
