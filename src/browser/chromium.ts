import type { BrowserId } from "../base/ids.js";
import type { Millis } from "../base/clock.js";
import type { Stops } from "../base/stops.js";
import type { RungName } from "../spec/bodies.js";
import type { PageFill, PageFillOutcome } from "../spec/page-fill.js";
import type { NavigationWatch } from "./fill/navigation-watch.js";
import type { PasskeyCredential, PasskeyEvents } from "./passkeys/page-authenticators.js";
import type { FillContext } from "./fill/fill-page.js";
import type { Attestation, AttestationParts } from "./attestation.js";
import type { Sandbox } from "./isolation/sandbox.js";
import type { MemoryUse } from "./resources/cgroup-memory.js";
import type { LimitsInForce } from "./resources/limits.js";
import type { Pipe } from "./cdp/pipe.js";
import type { StartedProcess } from "./isolation/syscall-filter.js";

export type Engine = "chromium" | "headless-shell";

/** What a browser is launched from, made from the pool's template. */
export interface LaunchSpec {
  readonly browser: BrowserId;
  readonly engine: Engine;
  readonly headless: boolean;
  readonly stealth: boolean;
  readonly kioskMode: boolean;
  readonly viewport: { readonly width: number; readonly height: number };
  readonly memoryBytes: number;
  /** The page to open after launch. Nobody waits for it, and its failure fails nothing. */
  readonly startUrl?: string;
  /** Enterprise policy of its own, merged over our defaults and below what is pinned. */
  readonly policy?: Readonly<Record<string, unknown>>;
  /**
   * True where it ends with its first holder. Then it is never reset, and its state after launch is not
   * recorded.
   */
  readonly isForOne?: true;
  /** Its one way out. It is absent only in tests and benches, where the browser may reach everything. */
  readonly egress?: BrowserProxy;
}

/**
 * The directories of a browser that is about to start, and the uid that owns files in them (null: our own).
 */
export interface StartDirectories {
  readonly directories: Directories;
  readonly uid: number | null;
  /** Aborts when the launch is given up. */
  readonly signal: AbortSignal;
}

/** An unpacked extension that the browser may read and not write. */
export interface ExtensionDirectory {
  readonly name: string;
  readonly path: string;
}

/**
 * What became of extensions that a running browser was given. Either all are loaded; or none, because
 * Chromium refuses one in its own words; or none, because only a restart can load them (`why`).
 */
export type LoadResult =
  | { readonly kind: "loaded" }
  | { readonly kind: "refused"; readonly name: string; readonly message: string }
  | { readonly kind: "needs-restart"; readonly why: string };

/**
 * What an ended browser leaves that will be started again, or saved: its directories and its uid are still
 * its own.
 */
export interface KeptWorkspace {
  readonly directories: Directories;
  readonly uid: number | null;
  readonly extensions: readonly ExtensionDirectory[];
  /** True where Chromium exited by itself, with all of its state written. */
  readonly isWhole: boolean;
  /** Notes what ends all that is started there from now on. */
  occupy(stops: Stops): void;
  /** Ends what has been started there. Throws where something is left; it may be called again. */
  vacate(): Promise<void>;
  /** The same, and then removes the directories and gives back the uid. */
  discard(): Promise<void>;
}

/** How a browser finds the proxy that is its way out. */
export interface BrowserProxy {
  /** The value of `--proxy-server`. It has no credentials, because Chromium refuses them there. */
  readonly proxyUrl: string;
  /** The network namespace it is put into, as a path that nsenter(1) can open. */
  readonly namespace?: string;
  /**
   * The user namespace that owns `namespace`, where that was made without root; it has to be entered first.
   */
  readonly userNamespace?: string;
  /**
   * Has the proxy admit connections of the browser's uid, until the returned function is called: after that
   * another browser may have the uid.
   */
  admit?(uid: number): () => void;
  /**
   * With this the launch proves that its egress holds it, and fails where that cannot be proved. Without it
   * nothing is proved.
   */
  readonly attesting?: AttestationParts;
}

/** The directories of one browser, removed with it. Nothing else of the host is its own. */
export interface Directories {
  readonly root: string;
  readonly profile: string;
  /** Unpacked extensions; the daemon's, so that the browser cannot change them. */
  readonly extensions: string;
  readonly downloads: string;
  /** Files for `DOM.setFileInputFiles` may lie in this directory. */
  readonly uploads: string;
  readonly temporary: string;
  /** Where NSS keeps certificates. */
  readonly keys: string;
  /** The X server makes its socket here, beside the file that lets clients in. */
  readonly display: string;
  readonly authority: string;
}

/**
 * What really isolates a browser here, as logs and the browser's record report it. docs/isolation.md explains
 * it.
 */
export interface Isolation {
  readonly rung: RungName;
  /** The files that the browser may see: `own` has a private root, `host` sees all that its uid may read. */
  readonly files: "own" | "host";
  /** `one` means that its host may serve one tenant only. */
  readonly tenants: "many" | "one";
  readonly sandbox: Sandbox;
  /** The uid of its own, or null where the daemon may not give one. */
  readonly uid: number | null;
  readonly limits: LimitsInForce;
  /**
   * What holds it to its proxy: a network namespace of its own, or switches, policy and the gateway's gate.
   * `none`: launched without egress.
   */
  readonly network: "namespace" | "proxy" | "none";
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** The last lines it wrote, at most 20. */
  readonly lastLines: readonly string[];
  /** As its cgroup told when it ended; absent without one. */
  readonly memory?: MemoryUse | undefined;
}

/** A program that works for clients of one browser, and reads what they and their pages say. */
export interface Sidecar {
  readonly command: readonly string[];
  /** Files and directories that it may read. On the rung `none` it sees what the browser's uid may read. */
  readonly files: readonly string[];
  /** The most that it may allocate by itself, beside what the browser may have. */
  readonly memoryBytes: number;
}

/** One running Chromium process tree. */
export interface Chromium {
  readonly id: BrowserId;
  readonly pid: number;
  readonly pipe: Pipe;
  readonly directories: Directories;
  readonly isolation: Isolation;
  /**
   * The proof that its egress holds it, from the launch or from the last `attest`; absent where none was
   * asked for.
   */
  readonly attestation: Attestation | undefined;
  /** `Browser.getVersion`, kept from the launch. */
  readonly version: {
    readonly product: string;
    readonly protocolVersion: string;
    readonly userAgent: string;
  };
  /** Settles when the main process has ended, for whatever reason. Never rejects. */
  readonly exited: Promise<Exit>;
  /** What its cgroup tells; undefined without one. Never rejects. */
  memory(): Promise<MemoryUse | undefined>;
  /** Processes that the kernel has ended for want of memory; undefined where that is not counted. */
  outOfMemoryKills(): number | undefined;
  /** A CDP round trip on the held pipe; throws when there is no answer within the limit. */
  probe(limitMs: Millis): Promise<void>;
  /**
   * Proves again that its egress holds it, as after a change of its rules. Throws `NotAttested`: then it must
   * not be handed out.
   */
  attest(asking: AttestationParts, limitMs: Millis): Promise<Attestation>;
  /**
   * Brings the browser back to its state after launch; says what still differs (empty when clean). `shut`
   * cuts its connections, and lets nothing pass until what it gives is called, before the start page is
   * opened.
   */
  reset(
    limitMs: Millis,
    shut?: () => () => Promise<void>,
  ): Promise<{ readonly differences: readonly string[] }>;
  /** Has downloads land in the browser's own directory, as from its launch on. */
  allowDownloads(): Promise<void>;
  /** Navigates the first page. Resolves when the command was sent; nobody hears how it went. */
  navigate(url: string): Promise<void>;
  /**
   * Gives the oldest page another viewport. Throws for a headful browser beyond what its display can become
   * (2560 × 1440, or its first size).
   */
  resize(viewport: { readonly width: number; readonly height: number }): Promise<void>;
  /** Writes values into inputs of a page. Never throws. */
  fillPage(fill: PageFill, around: FillContext): Promise<PageFillOutcome>;
  /** Tells when a page shows another document than now. Throws where it cannot. */
  watchNavigation(watch: NavigationWatch): Promise<void>;
  /**
   * Gives every page a passkey, also those that are opened later; without one the first that a page makes.
   * Throws where a page cannot have it. The result takes it from all of them.
   */
  armPasskey(credential: PasskeyCredential | undefined, heard?: PasskeyEvents): Promise<() => Promise<void>>;
  /** The loaded extensions, in load order. */
  readonly extensions: readonly ExtensionDirectory[];
  /** Loads all of them or none, while clients and pages go on; a page has them from its next navigation. */
  load(extensions: readonly ExtensionDirectory[], limitMs: Millis): Promise<LoadResult>;
  /**
   * Starts a program behind walls like the browser's own and without a network; it has four streams, the
   * descriptors 0, 1, 3 and 4. Throws where it cannot be started. It is the caller's to end.
   */
  startSidecar(sidecar: Sidecar): Promise<StartedProcess>;
  /**
   * Writes its cookies down as `stopAndKeep` does. Throws where they cannot be, as on a disk that is full.
   */
  keepCookies(limitMs: Millis): Promise<void>;
  /**
   * Asks Chromium to exit, kills what has not ended within the limit or when `signal` aborts, and keeps its
   * directories. They can be launched again with `adopt`, or be discarded. Where it throws because its
   * cookies cannot be written down, the browser goes on.
   */
  stopAndKeep(limitMs: Millis, signal?: AbortSignal): Promise<KeptWorkspace>;
  /**
   * Asks Chromium to exit, kills what has not ended within the limit, and clears up. Resolves when nothing is
   * left.
   */
  close(limitMs: Millis): Promise<void>;
  /** Ends all its processes at once and clears up. Resolves when nothing is left. */
  kill(): Promise<void>;
}
