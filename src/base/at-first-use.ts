import { closeSync, openSync } from "node:fs";
import { createRequire } from "node:module";

const load = createRequire(import.meta.url);

/**
 * Packages that are loaded when they are used first, as CommonJS: a load that has failed, as for want of a
 * file descriptor, is tried again at the next use. `import()` never forgets one that failed, so that a part
 * of the daemon would be broken until its next start; it serves what is loaded at the start alone
 * (DECISIONS.md#185).
 */
export function atFirstUse<Packages>(loadWith: (require: NodeJS.Require) => Packages): () => Packages {
  let loaded: { readonly packages: Packages } | undefined;
  return () => {
    if (!loaded) {
      findDescriptors();
      loaded = { packages: loadWith(load) };
    }
    return loaded.packages;
  };
}

/**
 * A load opens one file at a time, and meanwhile the threads that work for Node.js may open some. Nothing
 * else of the daemon runs before the load is over.
 */
const mostOpened = 32;

/**
 * Throws EMFILE or ENFILE where too few descriptors are left for a load: Node.js 20 takes a package.json that
 * it could not read for missing, for ever.
 */
function findDescriptors(): void {
  const opened: number[] = [];
  try {
    while (opened.length < mostOpened) opened.push(openSync("/dev/null", "r"));
  } finally {
    for (const descriptor of opened) closeSync(descriptor);
  }
}
