import { folderOf, type Source } from "./sources.js";

/** Whatever stands directly in src/ wires the roles; it imports everybody, and nobody in a folder imports it. */
const isRoot = (path: string): boolean => !path.includes("/") && path !== "config.ts";

interface Rule {
  readonly because: string;
  /** The offence a source commits, as `imports x`, or undefined. */
  readonly findFaults: (source: Source) => readonly string[];
}

const imports = (source: Source, isForbidden: (file: string) => boolean): string[] =>
  source.files.filter(isForbidden).map((file) => `imports ${file}`);

/** Sources in `folder` import only from the folders named. */
const only = (folder: string, allowed: readonly string[], because: string): Rule => ({
  because,
  findFaults: (source) =>
    folderOf(source.path) === folder ? imports(source, (file) => ![folder, ...allowed].includes(folderOf(file))) : [],
});

/** Only the folders or files named may use a package. */
const belongs = (packages: RegExp, places: readonly string[], because: string): Rule => ({
  because,
  findFaults: (source) =>
    places.some((place) => source.path.startsWith(place))
      ? []
      : source.packages.filter((name) => packages.test(name)).map((name) => `imports ${name}`),
});

/** Only the places named may contain what the pattern finds. */
const confined = (pattern: RegExp, places: readonly string[], because: string): Rule => ({
  because,
  findFaults: (source) =>
    places.some((place) => source.path.startsWith(place)) ? [] : [...source.code.matchAll(pattern)].map((match) => `says ${match[0]}`),
});

export const folderRules: readonly Rule[] = [
  only("base", [], "base/ imports nothing of ours: everything stands on it"),
  only("pool", ["base"], "pool/ is the domain: it knows its ports, not who implements them"),
  only("registry", ["base", "pool"], "registry/ is domain too: named things, no I/O"),
  only("config", ["base", "pool", "config.ts"], "the configuration is read before anything is made"),
  only("browser", ["base", "pool"], "browser/ is one Chromium: who lends it out is not its business"),
  only("egress", ["base", "pool", "registry"], "egress/ is the way out of one browser"),
  only("blob", ["base", "pool", "registry"], "blob/ keeps archives; others decide which"),
  only("telemetry", ["base", "pool", "config.ts"], "telemetry/ listens; it calls nobody"),
  {
    because: "store, schedule and telemetry are imported by the composition roots only (design.md 3): others are given ports",
    findFaults: (source) =>
      imports(source, (file) => {
        const folder = folderOf(file);
        return ["store", "schedule", "telemetry"].includes(folder) && folderOf(source.path) !== folder && !isRoot(source.path);
      }),
  },
  {
    because: "http and node never import each other: they may run in different processes",
    findFaults: (source) => {
      const other = { http: "node", node: "http" }[folderOf(source.path)];
      return imports(source, (file) => folderOf(file) === other);
    },
  },
  {
    because: "a composition root is the outermost page: what it wires does not know it",
    findFaults: (source) => (isRoot(source.path) ? [] : imports(source, isRoot)),
  },
  {
    because: "the bootstrap runs before anything is built and is part of nothing",
    findFaults: (source) => imports(source, (file) => file.startsWith("bootstrap")),
  },
];

// A stream is a value until somebody reads it.
const pureBuiltIns = ["node:crypto", "node:util", "node:events", "node:path", "node:net", "node:stream"];

export const packageRules: readonly Rule[] = [
  belongs(/^ioredis$/, ["store/"], "ioredis belongs to store/: Redis is reached through scripts"),
  belongs(/^bullmq$/, ["schedule/"], "bullmq belongs to schedule/: it carries work, never acquire"),
  belongs(/^(fastify|@fastify\/.*|ajv|ajv-formats)$/, ["http/"], "fastify belongs to http/"),
  belongs(/^playwright-core$/, ["browser/", "banner.ts"], "playwright-core belongs to browser/ (banner.ts prints a script that uses it)"),
  belongs(/^tar-stream$/, ["browser/pack-profile.ts", "browser/unpack-profile.ts"], "tar-stream is for profiles on their way out of and into a browser's directory"),
  belongs(/^p-queue$/, ["node/"], "p-queue belongs to node/: it bounds what one node does"),
  belongs(/^ws$/, ["node/"], "ws belongs to node/: the gateway is the only WebSocket server"),
  belongs(/^yauzl$/, ["blob/"], "yauzl belongs to blob/: archives are read nowhere else"),
  belongs(/^socks$/, ["egress/"], "socks belongs to egress/: the way out of a browser"),
  belongs(
    /^koffi$/, ["http/hung-up.ts", "browser/mounts.ts", "time-slice.ts"],
    "koffi is for the few calls of the C library that Node.js does not offer: http/hung-up.ts, browser/mounts.ts, time-slice.ts and egress/namespace-helper.mjs",
  ),
  belongs(/^(@aws-sdk\/.*|@mongodb-js\/zstd)$/, ["blob/"], "S3 and zstd belong to blob/: others are given archives and streams"),
  belongs(/^(pino|prom-client)$/, ["telemetry/"], "pino and prom-client belong to telemetry/: others are given a Log and counters"),
  belongs(
    /^(node:)?child_process$/,
    // The lock on the data directory is the private Redis's: flock(1) is how Node.js reaches the kernel's.
    ["browser/", "store/private-redis.ts", "store/directory-lock.ts", "egress/namespace"],
    "processes are started by browser/, the private Redis of store/ and the namespace tier of egress/ only",
  ),
  {
    because: "pool/ and registry/ do no I/O: rules take values and return values",
    findFaults: (source) =>
      ["pool", "registry"].includes(folderOf(source.path))
        ? source.packages.filter((name) => name.startsWith("node:") && !pureBuiltIns.includes(name)).map((name) => `imports ${name}`)
        : [],
  },
  {
    because: "a built-in module is named with node:, so that no package can take its place",
    findFaults: (source) =>
      source.packages.filter((name) => ["fs", "net", "http", "path", "os", "crypto", "child_process"].includes(name)).map((name) => `imports ${name}`),
  },
];

export const wordRules: readonly Rule[] = [
  confined(/\bprocess\.env\b|\benv\b.*\bfrom\s+"node:process"/g, ["config.ts", "banner.ts"], "the environment is read by config.ts only, validated (banner.ts prints a script that reads it)"),
  confined(/\bprocess\.exit\s*\(/g, ["main.ts"], "main.ts ends the process, after one shutdown"),
  confined(
    /\bDate\.now\b|\bnew Date\(\s*\)|\bperformance\.now\b|(?<![.\w])setTimeout\s*\(|(?<![.\w])setInterval\s*\(|"node:timers[^"]*"/g,
    ["base/"],
    "time comes through a Clock (base/clock.ts), so that a test can drive it",
  ),
  confined(/^export \* from/gm, [], "no barrels: the import graph shows who uses what"),
];

/** `pool/acquire.ts imports ioredis: ioredis belongs to store/ …` for every offence. */
export const faultsOf = (rules: readonly Rule[], sources: readonly Source[]): string[] =>
  sources.flatMap((source) =>
    rules.flatMap((rule) => rule.findFaults(source).map((fault) => `${source.path} ${fault}: ${rule.because}`)),
  );
