import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import type { Engine } from "./chromium.js";
import type { IsolationTools } from "./isolation/walls.js";
import { findPrlimit, type Prlimit } from "./resources/limits.js";
import { runProgram } from "./run-program.js";

/** The programs of this machine that browsers are started from and with. */
export interface Installed {
  readonly executables: Readonly<Partial<Record<Engine, string>>>;
  readonly xvfb?: string;
  readonly tools: IsolationTools;
  readonly prlimit?: Prlimit;
}

/** `named`: executables that are used instead of the installed ones. */
export async function findInstalled(named: Installed["executables"] = {}): Promise<Installed> {
  const [chromium, shell, xvfb, bwrap, setpriv, nsenter, prlimit] = await Promise.all([
    findExecutable("chromium", named.chromium),
    findExecutable("headless-shell", named["headless-shell"]),
    findTool("Xvfb"),
    findTool("bwrap"),
    findTool("setpriv"),
    findTool("nsenter"),
    findPrlimit(),
  ]);
  return {
    executables: { ...(chromium && { chromium }), ...(shell && { "headless-shell": shell }) },
    tools: { ...(bwrap && { bwrap }), ...(setpriv && { setpriv }), ...(nsenter && { nsenter }) },
    ...(xvfb && { xvfb }),
    ...(prlimit && { prlimit }),
  };
}

/**
 * The real binaries lie here. A distribution's wrapper (`/usr/bin/chromium`) is never one of them: it adds
 * switches of its own (`--disable-extensions-except`, API keys) and a shell between us and the process
 * (docs/chromium.md#the-binary).
 */
const places: Record<Engine, readonly string[]> = {
  chromium: [
    "/usr/lib/chromium/chromium",
    "/usr/lib64/chromium-browser/chromium-browser",
    "/usr/lib/chromium-browser/chromium-browser",
    "/opt/google/chrome/chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  ],
  "headless-shell": [
    "/usr/lib/chromium/chromium-headless-shell",
    "/usr/lib64/chromium-browser/headless_shell",
    "/usr/lib64/chromium-browser/chromium-headless-shell",
    "/opt/chrome-headless-shell/chrome-headless-shell",
  ],
};

/**
 * The binary of an engine: the one named by configuration if it may be executed, else the first one found.
 */
export async function findExecutable(engine: Engine, override?: string): Promise<string | undefined> {
  for (const place of override === undefined ? places[engine] : [override]) {
    if (await isExecutable(place)) return place;
  }
  return undefined;
}

/** The first executable file of that name in the directories where a system keeps its tools. */
export async function findTool(name: string): Promise<string | undefined> {
  for (const directory of ["/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin", "/opt/X11/bin"]) {
    const place = `${directory}/${name}`;
    if (await isExecutable(place)) return place;
  }
  return undefined;
}

const isExecutable = (path: string): Promise<boolean> =>
  access(path, constants.X_OK).then(
    () => true,
    () => false,
  );

const versionLimitMs = 10_000;

/** Finds the major version that an executable reports, such as "156"; undefined where it reports none now. */
export type FindMajorVersion = (executable: string) => Promise<string | undefined>;

/**
 * Asks each executable once, and again when its file has changed: asking starts the executable. One that
 * could not be run is asked again, since what it lacked may be there by then.
 */
export function makeFindMajorVersion(): FindMajorVersion {
  const known = new Map<string, Promise<string | undefined>>();
  return async (executable) => {
    const { mtimeMs } = await stat(executable);
    const key = `${executable} ${mtimeMs}`;
    const found = known.get(key) ?? askMajorVersion(executable);
    known.set(key, found);
    return await found.catch(() => {
      known.delete(key);
      return undefined;
    });
  };
}

async function askMajorVersion(executable: string): Promise<string | undefined> {
  const { succeeded, output, complaint } = await runProgram(executable, ["--version"], {
    limitMs: versionLimitMs,
  });
  if (!succeeded) throw new Error(`no version could be asked for: ${complaint}`);
  return / (\d+)\.\d/.exec(output)?.[1];
}
