import { addresses } from "./addresses.js";
import type { Attempt } from "./attempt.js";
import { changes } from "./changes.js";
import { commands } from "./commands.js";
import { contexts } from "./contexts.js";
import { extensions } from "./extensions.js";
import { pages } from "./pages.js";
import { services } from "./services.js";
import { webrtc } from "./webrtc.js";

/** Every way out that is known. */
export const corpus: readonly Attempt[] = [
  ...pages,
  ...addresses,
  ...webrtc,
  ...services,
  ...changes,
  ...contexts,
  ...commands,
  ...extensions,
];
