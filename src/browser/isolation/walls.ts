import type { RungName } from "../../spec/bodies.js";
import type { Directories, BrowserProxy } from "../chromium.js";
import {
  type DisplayPrograms,
  displayRoot,
  sidecarRoot,
  type PrivateRoot,
  privateRoot,
  type ShownCopy,
} from "./private-root.js";
import type { Rung } from "./rungs.js";
import type { Sandbox } from "./sandbox.js";

/** The programs that change what a process may do before it becomes Chromium. */
export interface IsolationTools {
  readonly bwrap?: string;
  readonly setpriv?: string;
  readonly nsenter?: string;
}

/** What one browser has of the host when its command line is made. */
export interface WalledIn {
  readonly directories: Directories;
  /** Null means the daemon's own uid. */
  readonly uid: number | null;
  /** Its network namespace, and the user namespace which owns that, if any. */
  readonly egress?: Pick<BrowserProxy, "namespace" | "userNamespace"> | undefined;
  readonly hasPolicies: boolean;
  readonly hasDisplay: boolean;
  readonly executableCopy?: ShownCopy;
}

/** Makes a command line: the program, and what it is started with. */
type CommandLine = (inside: WalledIn, command: readonly string[]) => string[];

/** The walls of one host, on the rung that holds there. */
export interface Walls {
  readonly rung: RungName;
  /** The one of Chromium's own sandboxes that is on inside. */
  readonly sandbox: Sandbox;
  /** The filter that `startWalled` installs; absent where there is no private root. */
  readonly filter?: string;
  /** Starts `command` as a browser. */
  readonly browser: CommandLine;
  /** Starts `command` as the X server of one browser. */
  readonly display: CommandLine;
  /** Starts `command`, which may read these files, for clients of one browser, without a network. */
  sidecar(inside: WalledIn, command: readonly string[], files: readonly string[]): string[];
}

export interface WallParts {
  readonly rung: Rung;
  readonly sandbox: Sandbox;
  /** Present where the rung has a private root. */
  readonly form?: PrivateRoot["form"];
  readonly tools: IsolationTools;
  readonly system: readonly string[];
  readonly desktop: readonly string[];
  readonly libraries: readonly string[];
  readonly displayPrograms?: DisplayPrograms;
  /** Programs that browsers get to see, since they are started before Chromium. */
  readonly programs: readonly string[];
  /** Where Chromium looks for its policies, such as `/etc/chromium/policies`. */
  readonly policies: string;
  /** What lies beside them there, and in the place of Chromium's crash handler, as options for bwrap(1). */
  readonly configuration: readonly string[];
  /** The path that `makeFilter` gave. */
  readonly filter?: string;
  /** The directory of `makeEtc` for that uid. */
  etcOf(uid: number): string;
}

/**
 * Each program of a command line becomes the next one by exec, so that the first process stays the one that
 * was spawned. Namespaces that the daemon holds are entered first, since only it can open their paths. Throws
 * where a network namespace is asked for and cannot be entered: a browser must not run outside it.
 */
export function makeWalls(parts: WallParts): Walls {
  const { rung, sandbox, tools } = parts;
  return {
    rung: rung.name,
    sandbox,
    ...(parts.form !== undefined && parts.filter !== undefined && { filter: parts.filter }),
    browser: (inside, command) => [...entering(tools, inside.egress), ...walledIn(parts, inside, command)],
    display: (inside, command) => displayOf(parts, inside, command),
    sidecar: (inside, command, files) => {
      const root = rootOf(parts, inside);
      return root === undefined
        ? openly(parts, inside, command)
        : [...entrance(parts, inside, sidecarRoot(root, files)), ...command];
    },
  };
}

function entering(
  { nsenter }: IsolationTools,
  { namespace, userNamespace }: NonNullable<WalledIn["egress"]> = {},
): string[] {
  if (namespace === undefined) return [];
  if (nsenter === undefined)
    throw new Error("nsenter is not installed, and a network namespace cannot be entered without it");
  const user = userNamespace === undefined ? [] : [`--user=${userNamespace}`, "--preserve-credentials"];
  return [nsenter, ...user, `--net=${namespace}`, "--"];
}

function walledIn(parts: WallParts, inside: WalledIn, command: readonly string[]): string[] {
  const root = rootOf(parts, inside);
  if (root === undefined) return openly(parts, inside, command);
  return [...entrance(parts, inside, privateRoot(root)), ...command];
}

function displayOf(parts: WallParts, inside: WalledIn, command: readonly string[]): string[] {
  const root = rootOf(parts, inside);
  if (root === undefined || !parts.displayPrograms) return openly(parts, inside, command);
  return [...entrance(parts, inside, displayRoot(root, parts.displayPrograms)), ...command];
}

function rootOf(
  {
    form,
    rung,
    system,
    desktop,
    libraries,
    programs,
    policies,
    configuration,
    filter,
    etcOf,
    tools,
  }: WallParts,
  inside: WalledIn,
): PrivateRoot | undefined {
  if (form === undefined) return undefined;
  const { uid, egress, directories, hasDisplay, executableCopy } = inside;
  const own = uid ?? process.getuid?.() ?? 0;
  const givesUpRights = form === "root" && tools.setpriv !== undefined;
  return {
    form,
    proc: rung.proc ?? "own",
    closesUserNamespaces: !rung.hasSandbox && form === "user-namespace",
    system,
    desktop,
    libraries,
    configuration,
    programs: givesUpRights ? [tools.setpriv, ...programs] : programs,
    etc: etcOf(own),
    directories,
    hasDisplay,
    ...(executableCopy && { executableCopy }),
    resolvesNames: egress === undefined,
    ...(egress?.userNamespace !== undefined && { mappedUid: own }),
    ...(inside.hasPolicies && { policies }),
    ...(filter !== undefined && { filter }),
  };
}

/**
 * The start of the command line. Where root makes the mounts the uid is given up inside, otherwise before.
 */
function entrance({ tools, form }: WallParts, { uid }: WalledIn, options: readonly string[]): string[] {
  const { bwrap, setpriv } = tools;
  if (bwrap === undefined) throw new Error("bwrap (bubblewrap) is not installed");
  if (uid === null) return [bwrap, ...options, "--"];
  if (setpriv === undefined) throw new Error("setpriv (util-linux) is not installed");
  const identity = [setpriv, ...asUser(uid)];
  if (form === "user-namespace") return [...identity, "--", bwrap, ...options, "--"];
  return [bwrap, ...options, "--", ...identity, "--bounding-set=-all", "--"];
}

const asUser = (uid: number): string[] => ["--reuid", `${uid}`, "--regid", `${uid}`, "--clear-groups"];

/**
 * Starts a program without a private root. The kernel forgets the parent-death signal when the uid changes
 * (prctl(2)), so that signal is set last. Only Chromium's setuid sandbox needs a process that may gain
 * rights.
 */
function openly(
  { tools: { setpriv }, sandbox }: WallParts,
  { uid }: WalledIn,
  command: readonly string[],
): string[] {
  if (setpriv === undefined && uid !== null)
    throw new Error("setpriv (util-linux) is not installed, and a browser must not run as root");
  if (setpriv === undefined) return [...command];
  const identity = uid === null ? [] : [setpriv, ...asUser(uid), "--bounding-set=-all", "--"];
  const rights = sandbox === "setuid" ? [] : ["--no-new-privs"];
  return [...identity, setpriv, ...rights, "--pdeathsig", "SIGKILL", "--", ...command];
}
