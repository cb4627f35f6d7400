import type { World } from "../../../support/egress/egress-world.js";
import type { AllowedSite, Served } from "../../../support/egress/egress-site.js";
import type { SecureSite } from "../../../support/egress/egress-secure-site.js";
import type { RawCdp } from "../../../support/gateway/raw-cdp.js";
import type { Page } from "./page.js";

/** What an attempt has to do its worst with. */
export interface Work {
  /** Part of every URL and name of this attempt. */
  readonly nonce: string;
  /** The port that has to stay untouched. */
  readonly port: number;
  readonly world: World;
  readonly site: AllowedSite;
  readonly secure: SecureSite;
  /** A URL at the port: `http://<denied host>:<port>/<nonce>` unless told otherwise. */
  url(other?: { readonly scheme?: string; readonly host?: string; readonly path?: string }): string;
  /**
   * A name of the attempt's own in one of the zones; asking anybody for one outside, or a local one, is a
   * contact.
   */
  name(zone: "outside" | "local" | "private" | "loopback" | "mixed" | "rebinding"): string;
  /** Has the allowed site serve something for this attempt; gives the URL. */
  serve(path: string, served: Served): string;
  /** A connection of the attempt's own, as any holder of the lease can have. */
  readonly cdp: RawCdp;
  /** The browser's URL, for clients that connect themselves. */
  readonly cdpUrl: string;
  /** The same for clients of WebDriver BiDi; only with the need `bidi`. */
  readonly bidiUrl: string;
  /** Opens a page of the allowed site, or of the given URL, in the first context or the given one. */
  open(url?: string, context?: string): Promise<Page>;
  /**
   * Writes files, by their names, to a directory of the session's own; gives the directory. Only with the
   * need `uploads`.
   */
  upload(files: Readonly<Record<string, string>>): Promise<string>;
  /**
   * Gives the browser an extension, in every way its holder has; false where all refuse it. Only with the
   * need `uploads`.
   */
  extend(files: Readonly<Record<string, string>>): Promise<boolean>;
  /** Allows these hosts besides, and those of the call before no more; without a guard all are. */
  permit(hosts: readonly string[]): Promise<void>;
  /** Ports of Remuda itself. */
  readonly ownPorts: readonly number[];
  /** All names that a browser of this run has asked a name server for. */
  namesAsked(): readonly string[];
  /**
   * Looks until it holds, where the attempt has to get out; where it has not, once an allowed request that
   * begins now has arrived. Gives whether it held.
   */
  shows(holds: () => Promise<boolean> | boolean): Promise<boolean>;
  /** The attempt has seen by itself that it got through. */
  saw(what: string): void;
}

/**
 * Why an attempt reaches no sink in a Chromium that nobody guards either; it is kept for what it would find
 * if that changed.
 */
export interface Never {
  readonly because: string;
}

export type Need =
  /** Full Chromium: extensions, policies, developer tools. */
  | "chromium"
  /** Commands of CDP that a page cannot give. */
  | "privileged-cdp"
  | "bidi"
  /** Names that resolve as the attempt wants. */
  | "names"
  | "node"
  | "node6"
  | "metadata"
  | "uploads"
  | "own-ports";

export interface Attempt {
  readonly name: string;
  readonly needs?: readonly Need[];
  /**
   * It alters the whole browser, so it gets one of its own; those of one name share it, one after the other.
   */
  readonly isAlone?: true | string;
  /** It counts what others would send as well, so that nothing else may run. */
  readonly isLast?: true;
  /**
   * What it does is to turn the browser from its proxy. Without a guard it is tried on one that has a proxy,
   * to nowhere.
   */
  readonly leavesProxy?: true;
  /** Does a full, headless Chromium without any guard reach the sink by it? */
  readonly reachesPlain: true | Never;
  /**
   * Does its worst. What it throws is no failure, and it ends by itself or is left behind after its limit.
   */
  run(work: Work): Promise<unknown>;
}

/** An attempt of a script in a page of the allowed site; in the script, `url` is the denied one. */
export function inPage(
  name: string,
  script: string | ((work: Work) => string),
  other: Partial<Attempt> = {},
): Attempt {
  return {
    name,
    reachesPlain: true,
    ...other,
    async run(work) {
      const page = await work.open();
      await page.evaluate(
        `const url = ${JSON.stringify(work.url())}; ${typeof script === "string" ? script : script(work)}`,
      );
    },
  };
}

/** An attempt of a document that the allowed site serves. */
export function inDocument(
  name: string,
  document: (url: string, work: Work) => string,
  other: Partial<Attempt> = {},
): Attempt {
  return {
    name,
    reachesPlain: true,
    ...other,
    async run(work) {
      await work.open(
        work.serve("/document", { body: `<!doctype html><body>${document(work.url(), work)}` }),
      );
    },
  };
}
