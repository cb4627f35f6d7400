import type { EventCategory } from "../event.js";
import { bindingName, interactionScript, worldName } from "./interaction-script.js";
import type { ProtocolRecord } from "./protocol-record.js";

/** A command on one target's session. */
export type SendCommand = (method: string, params?: object) => Promise<ProtocolRecord>;

/** What Chromium has to be asked for so that it tells of a category. */
export interface Domain {
  /** As Chromium calls it, where its events begin with that. */
  readonly name: string;
  readonly categories: readonly EventCategory[];
  /** Only documents have it, workers do not. */
  readonly isOfDocuments: boolean;
  /** Asks for it, and gives back how it is ended. */
  start(send: SendCommand): Promise<() => Promise<unknown>>;
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
    async start(send) {
      await send("Runtime.enable");
      return () => send("Runtime.disable");
    },
  },
  {
    name: "Network",
    categories: ["network"],
    isOfDocuments: false,
    async start(send) {
      await send("Network.enable", { ...keptBodies, maxPostDataSize: longestPostDataBytes });
      return () => send("Network.disable");
    },
  },
  {
    // A screenshot is taken when the layout is settled.
    name: "PerformanceTimeline",
    categories: ["page", "screenshot"],
    isOfDocuments: true,
    async start(send) {
      await send("PerformanceTimeline.enable", { eventTypes: ["layout-shift", "largest-contentful-paint"] });
      return () => send("PerformanceTimeline.enable", { eventTypes: [] });
    },
  },
  {
    name: "interactions",
    categories: ["interaction"],
    isOfDocuments: true,
    async start(send) {
      const binding = { name: bindingName };
      const script = { source: interactionScript, worldName, runImmediately: true };
      const [, { identifier }] = await Promise.all([
        send("Runtime.addBinding", { ...binding, executionContextName: worldName }),
        send("Page.addScriptToEvaluateOnNewDocument", script),
      ]);
      return () =>
        Promise.all([
          send("Runtime.removeBinding", binding),
          send("Page.removeScriptToEvaluateOnNewDocument", { identifier }),
        ]);
    },
  },
];

interface TargetDomainsParts {
  readonly isOfDocument: boolean;
  /** Whether what was before a domain is asked for would be told again. */
  hasPast(): boolean;
  readonly ask: SendCommand;
  /** A domain tells nothing any more. */
  stopped(domain: Domain): void;
}

/** What one target's session was asked to tell. */
export class TargetDomains {
  readonly #started = new Map<Domain, () => Promise<unknown>>();
  /** Domains that are telling what was before they were asked for; they answer afterwards. */
  readonly #retelling = new Set<string>();

  constructor(private readonly parts: TargetDomainsParts) {}

  /** Whether this is of what was before: told only of what has just come to be. */
  isRetelling(method: string): boolean {
    return this.#retelling.has(method.slice(0, method.indexOf(".")));
  }

  /** Asks for what the categories want, and ends what they do not. */
  async apply(categories: ReadonlySet<EventCategory>): Promise<void> {
    await Promise.all(domains.map((domain) => this.#switch(domain, categories)));
  }

  async #switch(domain: Domain, categories: ReadonlySet<EventCategory>): Promise<void> {
    const isWanted = domain.categories.some((category) => categories.has(category));
    const stop = this.#started.get(domain);
    if (isWanted === (stop !== undefined) || (domain.isOfDocuments && !this.parts.isOfDocument)) return;
    this.#started.delete(domain);
    if (!stop) return await this.#start(domain).catch(() => {});
    await stop().catch(() => {});
    this.parts.stopped(domain);
  }

  async #start(domain: Domain): Promise<void> {
    if (this.parts.hasPast()) this.#retelling.add(domain.name);
    try {
      this.#started.set(domain, await domain.start(this.parts.ask));
    } finally {
      this.#retelling.delete(domain.name);
    }
  }
}
