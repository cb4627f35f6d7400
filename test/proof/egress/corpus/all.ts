import { addresses } from "./addresses.js";
import type { Attempt } from "./attempt.js";
import { changes } from "./changes.js";
import { commands } from "./commands.js";
import { contexts } from "./contexts.js";
import { extensions } from "./extensions.js";
import { hints, navigations, requests, subresources, workers } from "./pages.js";
import { services } from "./services.js";
import { webrtc } from "./webrtc.js";

/** Every way out that is known, by who takes it. */
export const corpusByKind = {
  navigations,
  subresources,
  requests,
  workers,
  hints,
  addresses,
  webrtc,
  services,
  changes,
  contexts,
  commands,
  extensions,
} satisfies Readonly<Record<string, readonly Attempt[]>>;
export type AttemptKind = keyof typeof corpusByKind;

export const corpus: readonly Attempt[] = Object.values(corpusByKind).flat();
