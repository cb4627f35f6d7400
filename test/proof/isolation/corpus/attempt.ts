import type { Engine } from "../../../../src/browser/chromium.js";
import type { Served } from "../../../support/egress/egress-site.js";
import type { RawCdp } from "../../../support/gateway/raw-cdp.js";
import type { Page } from "../../egress/corpus/page.js";
import type { Browser, KeepingBrowser, SourceBeside, TestMachine } from "../browser-source.js";
import type { Settings } from "../daemon.js";
import type { Site } from "../site.js";
import type { Target } from "../victims.js";

/** What an attempt has to do its worst with. */
export interface Work {
  /** Part of every name of this attempt. */
  readonly nonce: string;
  readonly engine: Engine;
  readonly machine: TestMachine;
  readonly browser: Browser;
  /** A connection of the attempt's own, as any holder of the lease can have. */
  readonly cdp: RawCdp;
  readonly site: Site;
  /** Files that must not be read. */
  readonly targets: readonly Target[];
  /** One of each sort, for attempts that take them one after the other. */
  readonly few: readonly Target[];
  /** Opens a page of the allowed site, or of the given URL. */
  open(url?: string): Promise<Page>;
  /** Has the allowed site serve something for this attempt; gives the URL. */
  serve(path: string, served: Served): string;
  /** What a page gets that is handed these files by DOM.setFileInputFiles. */
  readFiles(paths: readonly string[]): Promise<unknown>;
  /** What every page of the browser shows by now, and where it is. */
  shown(): Promise<string>;
  /**
   * Looks until it holds, where the attempt has to succeed; where it has not, once an allowed request that
   * begins now has arrived. Gives whether it held.
   */
  shows(holds: () => Promise<boolean> | boolean): Promise<boolean>;
  /** Whether it has words of the machine. */
  hasWords(found: unknown): boolean;
  /** Looks until there are words of the machine in what is found; gives what was found last. */
  untilFound(find: () => Promise<unknown>): Promise<unknown>;
  /** The same on a connection of its own, once the browser has restarted. */
  renewed(): Promise<Work>;
  /** Another browser, whose profile is kept. */
  openKeeping(): Promise<KeepingBrowser>;
  /** Browsers of another daemon beside, which has these settings. */
  openBeside(settings: Settings): Promise<SourceBeside>;
  /** Those of a pod as the manifests make it, with these settings besides. */
  openPod(settings: Settings): Promise<SourceBeside>;
  /** Nothing holds it on this machine, and the pages of the repository say so: what is said there. */
  admits(because: string): void;
  /** The attempt has seen by itself that it succeeded. */
  saw(what: string): void;
  /** Whether it has seen that already. */
  hasSeen(): boolean;
}

/** The attempt could not be made, so what it did not get says nothing of any wall. */
export class NothingProved extends Error {
  constructor(why: string) {
    super(`${why}, so nothing is proved`);
  }
}

/** Why an attempt gets nothing without a wall either; it is kept for what it would find if that changed. */
export interface Never {
  readonly because: string;
}

interface Common {
  readonly name: string;
  /** Extensions, policies and own pages: full Chromium alone. */
  readonly needsChromium?: true;
  /** Those with a display of their own have more memory than anybody should fill in a proof. */
  readonly needsHeadless?: true;
  /** A container as a pod of an overlay is. */
  readonly needsPod?: true;
  /** The wall against it is the end of its browser. */
  readonly endsBrowser?: true;
  /**
   * It alters the whole browser, so it gets one of its own; those of one name share it, one after the other.
   */
  readonly isAlone?: true | string;
  /** One of the most dangerous, which every `npm test` tries. */
  readonly isQuick?: true;
  /** Nothing holds it, and the pages of the repository say so: what is said there. */
  readonly isAdmitted?: string;
  /** Does it succeed without a wall? `as root`: only a daemon that is root has what it is after. */
  readonly succeedsPlain: true | "as root" | Never;
}

/**
 * What a holder of a lease can do; what it gives, and whatever pages show after it, must not contain words of
 * the machine.
 */
export interface ClientAttempt extends Common {
  readonly vector: "page" | "extension" | "CDP" | "outside";
  run(work: Work): Promise<unknown>;
}

/** What a program does that has taken over the browser's process. */
export interface ProcessAttempt extends Common {
  readonly vector: "process";
  /** Its name in intruder.pl. */
  readonly script: string;
  /** It leaves marks wherever it can write: root without a wall could everywhere. */
  readonly leavesMarks?: true;
  /** How much it wants at most: processes, or MiB. */
  readonly bound?: number;
  /** Judges what the program printed; gives what that betrays. */
  judge?(text: string, machine: TestMachine): string | undefined;
}

export type Attempt = ClientAttempt | ProcessAttempt;

/** All texts in a value, however deep. */
export function textsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap(textsIn);
}
