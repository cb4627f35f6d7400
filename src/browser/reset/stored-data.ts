import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { findForeignText } from "../foreign-file.js";

/** A directory of the profile in which each entry that `holds` is data of some origin. */
interface StoredData {
  readonly what: string;
  readonly path: string;
  readonly holds: RegExp;
}

/** Chromium's "simple" cache has a file or more per entry, beside an index (net/disk_cache/simple). */
const cacheEntry = /^[0-9a-f]{16}_/;
const anything = /./;

/**
 * All kinds of data whose directory or file goes when the data goes (Chromium 156,
 * docs/chromium.md#clearing-a-used-browser).
 */
const places: readonly StoredData[] = [
  { what: "HTTP cache entries", path: "Cache/Cache_Data", holds: cacheEntry },
  { what: "compiled scripts", path: "Code Cache/js", holds: cacheEntry },
  { what: "compiled WebAssembly", path: "Code Cache/wasm", holds: cacheEntry },
  { what: "shared dictionaries", path: "Shared Dictionary/cache", holds: cacheEntry },
  { what: "origins in IndexedDB", path: "IndexedDB", holds: anything },
  { what: "origins in CacheStorage", path: "Service Worker/CacheStorage", holds: anything },
  { what: "service worker scripts", path: "Service Worker/ScriptCache", holds: cacheEntry },
  { what: "origins in the file system", path: "File System", holds: /^\d+$/ },
  { what: "partitioned storage buckets", path: "WebStorage", holds: /^\d+$/ },
  { what: "extensions with settings", path: "Local Extension Settings", holds: anything },
];

/**
 * A LevelDB. Keys in its log are plain text, and clearing starts a new log; a table (`.ldb`) is made only of
 * much data.
 */
interface Database {
  readonly what: string;
  readonly path: string;
  readonly holds: RegExp;
}

const databases: readonly Database[] = [
  { what: "localStorage", path: "Local Storage/leveldb", holds: /META:|\.ldb/ },
  { what: "sessionStorage", path: "Session Storage", holds: /map-\d+-|\.ldb/ },
];

/** LevelDB begins a new log after 4 MiB. */
const mostLogBytes = 2 ** 26;

/** Lists what pages have stored in a profile, one line for each kind; none where nothing is stored. */
export async function storedIn(profile: string): Promise<string[]> {
  const base = join(profile, "Default");
  const lines = await Promise.all([
    ...places.map((place) => countedIn(base, place)),
    ...databases.map((database) => keptIn(base, database)),
  ]);
  return lines.filter((line) => line !== undefined);
}

/** Counts the answers of the HTTP cache that are on disk; once it is cleared it has no others. */
export const cachedAnswersIn = async (profile: string): Promise<number> =>
  (await namesIn(join(profile, "Default", "Cache", "Cache_Data"))).filter((name) => cacheEntry.test(name))
    .length;

async function countedIn(base: string, { what, path, holds }: StoredData): Promise<string | undefined> {
  const count = (await namesIn(join(base, path))).filter((name) => holds.test(name)).length;
  return count > 0 ? `${count} ${what}` : undefined;
}

async function keptIn(base: string, { what, path, holds }: Database): Promise<string | undefined> {
  const directory = join(base, path);
  const names = await namesIn(directory);
  const logs = names.filter((name) => name.endsWith(".log"));
  const texts = await Promise.all(
    logs.map(async (name) => (await findForeignText(join(directory, name), mostLogBytes, "latin1")) ?? ""),
  );
  return [...names, ...texts].some((text) => holds.test(text)) ? what : undefined;
}

const namesIn = (directory: string): Promise<string[]> => readdir(directory).catch(() => []);
