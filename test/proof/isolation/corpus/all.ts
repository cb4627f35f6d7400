import type { Attempt } from "./attempt.js";
import { appetites } from "./appetites.js";
import { archives } from "./archives.js";
import { commands } from "./commands.js";
import { walks } from "./domains.js";
import { extensions } from "./extensions.js";
import { floods } from "./floods.js";
import { outside } from "./outside.js";
import { ownPages } from "./internal-pages.js";
import { pages } from "./pages.js";
import { processes } from "./processes.js";
import { shipped } from "./shipped.js";

/** Every attempt that is known against one browser, by what it goes at. */
export const corpusByKind = {
  outside,
  pages,
  commands,
  walks,
  processes,
  extensions,
  archives,
  ownPages,
  floods,
  appetites,
  shipped,
} satisfies Readonly<Record<string, readonly Attempt[]>>;

export const corpus: readonly Attempt[] = Object.values(corpusByKind).flat();

/**
 * Tried without walls in the quick part too: the first of each kind that succeeds then, whoever the daemon
 * is.
 */
export const quickControls: readonly Attempt[] = Object.values<readonly Attempt[]>(corpusByKind).flatMap(
  (attempts) =>
    attempts.filter(({ isQuick, succeedsPlain }) => isQuick && succeedsPlain === true).slice(0, 1),
);
