import type { EventCategory } from "../event.js";
import { bindingName, interactionScript, worldName } from "./interaction-script.js";
import type { Said } from "./said.js";

/** A command on one target's session. */
export type Ask = (method: string, params?: object) => Promise<Said>;

/** What Chromium has to be asked for so that it tells of a category. */
export interface Domain {
  /** As Chromium calls it, where its events begin with that. */
  readonly name: string;
  readonly categories: readonly EventCategory[];
  /** Only documents have it, workers do not. */
  readonly isOfDocuments: boolean;
  /** Asks for it, and gives back how it is ended. */
  start(ask: Ask): Promise<() => Promise<unknown>>;
}

const longestPostDataBytes = 8192;
/** What a renderer keeps of answers for us, so that the beginnings of texts can be asked for. */
const keptBodies = { maxTotalBufferSize: 1024 * 1024, maxResourceBufferSize: 64 * 1024 };

export const domains: readonly Domain[] = [
  {
    // Without it a world's functions are not there for it (Chromium 156).
    name: "Runtime",
    categories: ["console", "interaction"],
    isOfDocuments: false,
    async start(ask) {
      await ask("Runtime.enable");
      return () => ask("Runtime.disable");
    },
  },
  {
    name: "Network",
    categories: ["network"],
    isOfDocuments: false,
    async start(ask) {
      await ask("Network.enable", { ...keptBodies, maxPostDataSize: longestPostDataBytes });
      return () => ask("Network.disable");
    },
  },
  {
    // A screenshot is taken when the layout is settled.
    name: "PerformanceTimeline",
    categories: ["page", "screenshot"],
    isOfDocuments: true,
    async start(ask) {
      await ask("PerformanceTimeline.enable", { eventTypes: ["layout-shift", "largest-contentful-paint"] });
      return () => ask("PerformanceTimeline.enable", { eventTypes: [] });
    },
  },
  {
    name: "interactions",
    categories: ["interaction"],
    isOfDocuments: true,
    async start(ask) {
      const binding = { name: bindingName };
      const script = { source: interactionScript, worldName, runImmediately: true };
      const [, { identifier }] = await Promise.all([
        ask("Runtime.addBinding", { ...binding, executionContextName: worldName }),
        ask("Page.addScriptToEvaluateOnNewDocument", script),
      ]);
      return () =>
        Promise.all([
          ask("Runtime.removeBinding", binding),
          ask("Page.removeScriptToEvaluateOnNewDocument", { identifier }),
        ]);
    },
  },
];
