import { once } from "node:events";
import { mkdir, realpath, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "../../base/log.js";
import type { RungName } from "../../spec/bodies.js";
import type { Directories } from "../chromium.js";
import { directoriesOf, makeDirectories, newWorkspaceName } from "../directories.js";
import { findTool } from "../executable.js";
import { type Rung, rungsFrom } from "./rungs.js";
import { findSandbox, sandboxTrial, trialPrograms } from "./sandbox.js";
import { makeFilter, startWalled } from "./syscall-filter.js";
import {
  directoryOf,
  findDesktopFiles,
  findFiles,
  findLibraries,
  findSystemFiles,
  makeEtc,
  withoutCrashHandler,
} from "./system-files.js";
import { type IsolationTools, makeWalls, type Walls, type WallParts } from "./walls.js";

interface LadderSettings {
  readonly scratch: string;
  /** The weakest rung allowed. */
  readonly required: RungName;
  readonly executables: readonly string[];
  /** Further paths of the host that browsers may read. */
  readonly readable: readonly string[];
  readonly tools: IsolationTools;
  /** The program that sets limits inside, which browsers get to see. */
  readonly prlimit?: string;
  readonly xvfb?: string;
  /** Where Chromium looks for its policies, such as `/etc/chromium/policies`. */
  readonly policies: string;
  /** The paths of what lies beside them there. */
  readonly configuration: readonly string[];
  /** A uid that a browser might have; null where browsers have ours. */
  readonly uid: number | null;
}

/** The rung that holds, or why none of those that are allowed does. */
export type Ladder =
  | { readonly kind: "holds"; readonly walls: Walls; readonly refused: readonly string[] }
  | { readonly kind: "refused"; readonly why: string };

const trialLimitMs = 5_000;
/** So many characters of what a refused trial wrote are reported. */
const mostComplaint = 300;

/**
 * Tries the rungs, the strongest first, each with the command line that browsers get. Called once per daemon.
 */
export async function climb(settings: LadderSettings, log: Log): Promise<Ladder> {
  const lacking = whatIsLacking(settings);
  if (lacking !== undefined) return { kind: "refused", why: lacking };
  const facts = await findFacts(settings);
  const refused: string[] = [];
  const attempts = rungsFrom(settings.required).flatMap((rung) =>
    formsOf(rung, settings.uid).map((form) => ({ rung, form })),
  );
  for (const { rung, form } of attempts) {
    const parts: WallParts = {
      ...facts,
      rung,
      sandbox: rung.hasSandbox ? "namespace" : "none",
      ...(form && { form }),
    };
    const failure = await tryRung(parts, settings);
    if (failure === undefined)
      return { kind: "holds", walls: makeWalls(await settled(parts, settings)), refused };
    refused.push(`${rung.name}: ${failure}`);
    log.info({ rung: rung.name, why: failure }, "isolation refused");
  }
  return { kind: "refused", why: refused.join("; ") };
}

/** No rung does without it: open files and core files are bounded by it alone. */
const whatIsLacking = ({ prlimit }: LadderSettings): string | undefined =>
  prlimit === undefined && process.platform === "linux"
    ? "prlimit (util-linux) is not installed as /usr/bin/prlimit, and sets what browsers may open"
    : undefined;

/** Root makes the mounts of some rungs; those are for a daemon that is root. */
function formsOf({ forms }: Rung, uid: number | null): readonly (WallParts["form"] | undefined)[] {
  if (forms === undefined) return [undefined];
  return uid === null ? forms.filter((form) => form !== "root") : forms;
}

/** Finds what every rung needs to know. */
async function findFacts(settings: LadderSettings): Promise<Omit<WallParts, "rung" | "sandbox" | "form">> {
  const { executables, prlimit, readable, scratch, tools, xvfb, policies } = settings;
  const places = new Set(await Promise.all(executables.map(directoryOf)));
  const [system, desktop, configuration, crashHandler, libraries, xkbcomp, shell] = await Promise.all([
    findSystemFiles([...new Set([...places, ...readable])]),
    findDesktopFiles(),
    findFiles(settings.configuration),
    withoutCrashHandler([...places]),
    findLibraries(readable),
    findTool("xkbcomp"),
    realpath("/bin/sh").catch(() => undefined),
  ]);
  return {
    system,
    desktop,
    libraries,
    tools,
    policies,
    configuration: [...configuration, ...crashHandler],
    programs: prlimit === undefined ? [] : [prlimit],
    filter: await makeFilter(scratch),
    ...(xvfb !== undefined &&
      xkbcomp !== undefined &&
      shell !== undefined && { displayPrograms: { xvfb, xkbcomp, shell } }),
    etcOf: (uid) => etcDirectory(scratch, uid),
  };
}

export const etcDirectory = (scratch: string, uid: number): string => join(scratch, "etc", `${uid}`);

/** Where there is no private root, the machine decides which of Chromium's sandboxes can be on. */
async function settled(parts: WallParts, { executables, uid }: LadderSettings): Promise<WallParts> {
  return parts.form === undefined ? { ...parts, sandbox: await findSandbox(executables[0], uid) } : parts;
}

/** Tries one rung. Undefined where it holds, else what was refused. */
async function tryRung(parts: WallParts, settings: LadderSettings): Promise<string | undefined> {
  if (parts.form === undefined) return openObjection(settings);
  if (process.platform !== "linux") return "private roots are Linux's";
  const directories = directoriesOf(settings.scratch, newWorkspaceName());
  try {
    return await tryIn(directories, parts, settings);
  } finally {
    await rm(directories.root, { recursive: true, force: true });
  }
}

/**
 * Whoever has the daemon's uid may read its files, its environment and its memory (ptrace(2)), so nothing it
 * keeps would be out of a browser's reach.
 */
const openObjection = ({ uid }: LadderSettings): string | undefined =>
  uid === null && process.platform === "linux"
    ? "browsers would have the daemon's uid, and with it all of its keys: a daemon that is root gives them others"
    : undefined;

async function tryIn(
  directories: Directories,
  parts: WallParts,
  { scratch, uid }: LadderSettings,
): Promise<string | undefined> {
  const own = uid ?? process.getuid?.() ?? 0;
  const walls = makeWalls({ ...parts, programs: [...parts.programs, ...trialPrograms] });
  const inside = { directories, uid, hasPolicies: true, hasDisplay: false };
  try {
    await makeDirectories(directories, uid);
    await mkdir(join(directories.root, "policy"), { recursive: true });
    await makeEtc(etcDirectory(scratch, own), own);
    return await complaintOf(
      walls,
      walls.browser(inside, parts.rung.hasSandbox ? sandboxTrial : ["/usr/bin/true"]),
    );
  } catch (error) {
    return (error as Error).message;
  }
}

/** Runs a command. Undefined where it ends well, else what it said. */
async function complaintOf(walls: Walls, command: readonly string[]): Promise<string | undefined> {
  const child = await startWalled(walls, command, {
    stdio: ["ignore", "ignore", "pipe"],
    timeout: trialLimitMs,
    killSignal: "SIGKILL",
    env: { PATH: "/usr/bin:/bin:/usr/sbin:/sbin" },
  });
  let complaint = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => (complaint += text));
  const [code] = (await once(child, "close")) as [number | null];
  return code === 0 ? undefined : complaint.trim().slice(0, mostComplaint) || "it was refused";
}
