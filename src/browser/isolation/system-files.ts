import { lstat, mkdir, readdir, readlink, realpath, rename, rm, writeFile } from "node:fs/promises";
import { randomBytes } from "node:crypto";
import { dirname, join } from "node:path";

/**
 * What Chromium loads or reads on a Debian or Fedora system. Programs, /usr/local and the daemon itself are
 * left out.
 */
const readable = [
  "/usr/lib",
  "/usr/lib64",
  "/usr/lib32",
  ...["fonts", "fontconfig", "zoneinfo", "ca-certificates", "mime"].map((name) => `/usr/share/${name}`),
  "/usr/local/share/fonts",
  "/var/cache/fontconfig",
  "/etc/fonts",
  "/etc/ssl",
  "/etc/pki",
  "/etc/ld.so.cache",
];

/** What GTK and the X server's keyboard read; without a display nobody does. */
const ofDisplays = ["X11", "glib-2.0", "icons"].map((name) => `/usr/share/${name}`);

/** Where /usr is merged these are links; otherwise they are directories that hold the libraries. */
const libraries = ["/lib", "/lib64", "/lib32"];

/** With more of them a mount costs less. */
const mostLinks = 4;

/** Paths of the host shown read-only, at the same path. */
export const readOnlyBinds = (paths: readonly string[]): string[] =>
  paths.flatMap((path) => ["--ro-bind", path, path]);

/**
 * Every directory above the paths; otherwise bwrap makes those that are missing for its own uid alone, where
 * it is root.
 */
export function parentDirectories(paths: readonly string[]): string[] {
  const above = new Set(paths.flatMap(ancestorsOf));
  return [...above].flatMap((path) => ["--perms", "0755", "--dir", path]);
}

const ancestorsOf = (path: string): string[] => {
  const parent = dirname(path);
  return parent === "/" || parent === path ? [] : [...ancestorsOf(parent), parent];
};

/**
 * The part of every private root that is the same for all browsers of a host: the system's files, and each
 * `extra` path. What is not there is left out. Given as options for bwrap(1).
 */
export async function findSystemFiles(extra: readonly string[]): Promise<readonly string[]> {
  const paths = await Promise.all([...readable, ...libraries].map(cheapOptionsFor));
  const zone = await realpath("/etc/localtime").catch(() => undefined);
  const others = await Promise.all(extra.filter((path) => !isInUsrLib(path)).map(optionsFor));
  const above = parentDirectories([...readable, ...extra, "/usr/bin/any"]);
  return [
    ...above,
    ...paths.flat(),
    ...(zone === undefined ? [] : ["--symlink", zone, "/etc/localtime"]),
    ...others.flat(),
  ];
}

const isInUsrLib = (path: string): boolean => path.startsWith("/usr/lib/") || path.startsWith("/usr/lib64/");

/** What a browser with a display, and its X server, need besides. */
export const findDesktopFiles = (): Promise<readonly string[]> => findFiles(ofDisplays);

/** Options for bwrap(1) that show these paths; the directories above them have to be there. */
export const findFiles = async (paths: readonly string[]): Promise<readonly string[]> =>
  (await Promise.all(paths.map(optionsFor))).flat();

/** What a program needs to be started at all: the system's libraries, and each `extra` path. */
export async function findLibraries(extra: readonly string[]): Promise<readonly string[]> {
  const system = ["/usr/lib", "/usr/lib64", "/usr/lib32", ...libraries, "/etc/ld.so.cache"];
  const paths = [...system, ...extra.filter((path) => !isInUsrLib(path))];
  return [...parentDirectories(paths), ...(await Promise.all(paths.map(optionsFor))).flat()];
}

/**
 * Saves the mount of a directory that holds nothing but links, as /usr/lib64 of Debian does: they are made
 * anew. An empty one, such as a place for fonts of one's own, is left out.
 */
async function cheapOptionsFor(path: string): Promise<string[]> {
  const isLink = (await lstat(path).catch(() => undefined))?.isSymbolicLink();
  const entries = isLink ? undefined : await readdir(path, { withFileTypes: true }).catch(() => undefined);
  if (entries === undefined || entries.length > mostLinks) return await optionsFor(path);
  if (!entries.every((entry) => entry.isSymbolicLink())) return await optionsFor(path);
  const links = await Promise.all(entries.map(({ name }) => optionsFor(join(path, name))));
  return links.length === 0 ? [] : ["--perms", "0755", "--dir", path, ...links.flat()];
}

async function optionsFor(path: string): Promise<string[]> {
  const found = await lstat(path).catch(() => undefined);
  if (found === undefined) return [];
  return found.isSymbolicLink() ? ["--symlink", await readlink(path), path] : readOnlyBinds([path]);
}

/** It does nothing and ends well. */
const idle = "/usr/bin/true";

/**
 * Options for bwrap(1) by which full Chromium in one of these directories finds a program that does nothing
 * in the place of the one that keeps what a process held when it crashed
 * (docs/chromium.md#the-crash-handler).
 */
export async function withoutCrashHandler(directories: readonly string[]): Promise<readonly string[]> {
  const handlers = directories.map((directory) => join(directory, "chrome_crashpad_handler"));
  const [idleOptions, ...found] = await Promise.all([idle, ...handlers].map(isFile));
  return handlers.filter((_, at) => idleOptions && found[at]).flatMap((path) => ["--ro-bind", idle, path]);
}

const isFile = (path: string): Promise<boolean> =>
  lstat(path).then(
    (entry) => entry.isFile(),
    () => false,
  );

/** Finds the directory of an executable and of what lies beside it, with links resolved. */
export async function directoryOf(executable: string): Promise<string> {
  return dirname(await realpath(executable).catch(() => executable));
}

const etcNames = ["passwd", "group", "nsswitch.conf", "hosts", "machine-id"] as const;

/** The few files of /etc that programs ask for; they say nothing of the host. */
function etcFiles(uid: number): Record<(typeof etcNames)[number], string> {
  return {
    passwd: `browser:x:${uid}:${uid}:browser:/:/nonexistent\n`,
    group: `browser:x:${uid}:\n`,
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    hosts: "127.0.0.1 localhost\n::1 localhost\n",
    "machine-id": `${randomBytes(16).toString("hex")}\n`,
  };
}

/**
 * Makes these files below `directory` where they are not there yet; every browser of that uid may use them.
 */
export async function makeEtc(directory: string, uid: number): Promise<void> {
  const isMade = await readdir(directory).then(
    (names) => names.length > 0,
    () => false,
  );
  if (isMade) return;
  const draft = `${directory}-${randomBytes(4).toString("hex")}`;
  await mkdir(draft, { recursive: true, mode: 0o755 });
  const files = Object.entries(etcFiles(uid));
  await Promise.all(files.map(([name, text]) => writeFile(join(draft, name), text, { mode: 0o644 })));
  // The first of two launches at once wins.
  await rename(draft, directory).catch(() => rm(draft, { recursive: true, force: true }));
}

/**
 * Options for bwrap(1) that show what `makeEtc` made: the directory at its own path, and links to its files.
 * A mount for each file would cost more, for bwrap reads the whole table of mounts after each one it makes
 * (DECISIONS.md 120).
 */
export const etcOptions = (directory: string): string[] => [
  ...parentDirectories([directory]),
  ...readOnlyBinds([directory]),
  ...etcNames.flatMap((name) => ["--symlink", join(directory, name), `/etc/${name}`]),
];
