import type { Kind } from "../arguments.js";
import type { ZipPart } from "../../support/archive/zip-bytes.js";
import type { Settings } from "./daemon.js";
import type { Place } from "./intrude.js";
import type { Target, Victims } from "./victims.js";

/** A browser and the ways in that its holder has. */
export interface Browser {
  readonly cdpUrl: string;
  /** Its directory of directories, by the same path inside and out. */
  readonly root: string;
  readonly isPlain: boolean;
  /** What keeps it apart, as it says itself. */
  readonly isolation?: {
    readonly rung?: string;
    readonly network?: string;
    readonly limits?: { readonly cpu?: string; readonly scratch?: string };
  };
  /** Gives it an extension of these files as its holder may; false where that is refused. */
  extend(files: Readonly<Record<string, string | Buffer>>): Promise<boolean>;
  /** The same with an archive of these entries, true or not. */
  unpack(entries: readonly ZipPart[]): Promise<boolean>;
  /** Where programs run that have taken over its process. */
  places(): Promise<readonly Place[]>;
  /** Its first process, seen from outside. */
  mainPid(): Promise<number>;
  close(): Promise<void>;
}

/** Opens browsers of one kind on a machine that has something to steal. */
export interface BrowserSource {
  readonly kind: Kind;
  /** Set where there is no wall: what no attempt gets here proves nothing elsewhere. */
  readonly isPlain: boolean;
  readonly machine: TestMachine;
  open(): Promise<Browser>;
  /** One whose profile its holder keeps. */
  openKeeping(): Promise<KeepingBrowser>;
  /** Those of another daemon, as the first is isolated; without a wall there is no other. */
  openBeside(settings: Settings): Promise<SourceBeside>;
  /** Those of a pod as the manifests make it, with these settings besides; undefined where there is none. */
  readonly openPod?: (settings: Settings) => Promise<SourceBeside>;
}

export interface SourceBeside {
  open(): Promise<Browser>;
  /** What its daemon has said. */
  log(): string;
  close(): Promise<void>;
}

export interface KeepingBrowser extends Browser {
  /** Ends it; gives the archive of its profile, as its holder can have it. */
  save(): Promise<Buffer>;
}

/** One daemon's machine. */
export interface TestMachine {
  readonly victims: Victims;
  /** Every file that no browser may read: the victims', the daemon's and those of a browser beside. */
  readonly targets: readonly Target[];
  /** What each words stand for. */
  readonly words: ReadonlyMap<string, string>;
  /** A directory that only this run has, readable and writable for the daemon's user. */
  readonly directory: string;
  readonly uid: number;
  /** Seen from outside, and in its own process namespace. */
  readonly daemonPid: number;
  readonly daemonPidInside: number;
  /** The sockets of the daemon's Redis and of its API. */
  readonly sockets: readonly string[];
  /** The X server of another browser, and the file with its cookie. */
  readonly display: { readonly socket: string; readonly authority: string };
  readonly port: number;
  readonly scratchDirectory: string;
  /** What the daemon has said. */
  log(): string;
  /** Seen from outside: what a path of the daemon's machine is here. */
  seen(path: string): string;
}
