import { folderOf, type Source } from "./sources.js";

/** The composition roots: they import everybody, and nobody imports them. */
const isRoot = (path: string): boolean => path === "main.ts" || path.startsWith("daemon/");

interface Rule {
  readonly because: string;
  /** The offence a source commits, as `imports x`, or undefined. */
  readonly findFaults: (source: Source) => readonly string[];
}

const imports = (source: Source, isForbidden: (file: string) => boolean): string[] =>
  source.files.filter(isForbidden).map((file) => `imports ${file}`);

const isIn = (places: readonly string[], file: string): boolean =>
  places.some((place) => file === place || file.startsWith(place.endsWith(".ts") ? place : `${place}/`));

/** What each folder may import besides itself: folders, or files of them. */
const walls: Readonly<Record<string, { readonly may: readonly string[]; readonly because: string }>> = {
  base: { may: [], because: "base/ imports nothing of ours: everything stands on it" },
  access: { may: ["base", "spec"], because: "access/ decides who may do what: rules and operations, no I/O" },
  spec: {
    may: ["base", "access/principal.ts"],
    because: "spec/ says what callers may ask for: requests, templates and their rules",
  },
  registry: {
    may: ["base", "spec", "access/principal.ts", "pool/ports"],
    because: "registry/ is domain: named things, no I/O",
  },
  oidc: {
    may: ["base", "access/people.ts"],
    because: "oidc/ judges people's tokens; what they may do is decided in access/",
  },
  pool: {
    may: ["base", "spec", "access/principal.ts", "registry"],
    because: "pool/ is the domain: it knows its ports, not who implements them",
  },
  telemetry: {
    may: ["base", "spec", "browser/cdp"],
    because:
      "telemetry/ is what happens in a browser, as its holder asked: where it is kept is a matter of its ports",
  },
  lease: {
    may: ["base", "spec", "access/principal.ts", "registry", "pool", "telemetry"],
    because: "lease/ lends what pool/ keeps, through the same ports",
  },
  config: {
    may: ["base", "spec", "pool/declared-pools.ts", "pool/standby/shapes.ts"],
    because: "the configuration is read before anything is made",
  },
  browser: {
    may: ["base", "spec"],
    because: "browser/ is one Chromium: who lends it out is not its business",
  },
  egress: { may: ["base", "registry"], because: "egress/ is the way out of one browser" },
  archive: { may: ["base", "registry"], because: "archive/ keeps archives; others decide which" },
  audit: {
    may: ["base", "archive/archives.ts", "archive/aws-answers.ts"],
    because: "audit/ keeps and reads what was done; where is a matter of its ports",
  },
  gateway: {
    may: ["base", "spec", "pool/ports", "browser", "egress", "telemetry/commands"],
    because: "gateway/ carries clients' frames: it knows one browser, not the node around it nor the API",
  },
  node: {
    may: ["base", "spec", "registry", "pool", "browser", "archive", "egress", "gateway", "telemetry"],
    because:
      "node/ runs browsers; whom they are lent to is decided elsewhere, and the API may run in another process",
  },
  vault: {
    may: ["base", "spec"],
    because: "vault/ is what is kept for pages to be filled with: rules and operations, no I/O",
  },
  form: {
    may: ["base", "audit/entry.ts", "audit/writer.ts", "vault/collection-form.ts"],
    because: "form/ is a page and what it asks; links and values are the vault's business",
  },
  keys: {
    may: ["base", "vault/encryption/key-provider.ts"],
    because: "keys/ asks those who keep the key of all vaults' keys; what is encrypted is not its business",
  },
  http: {
    may: [
      "base",
      "spec",
      "access",
      "registry",
      "pool",
      "lease",
      "audit",
      "telemetry",
      "vault",
      "archive/archives.ts",
    ],
    because: "http/ is the API: it runs operations, and browsers may be in another process",
  },
  store: {
    may: ["base", "spec", "access", "registry", "pool", "audit", "telemetry", "vault", "config/resolve.ts"],
    because: "store/ implements ports; nobody but the daemon knows it",
  },
  operator: { may: ["base"], because: "operator/ makes pools by the API, as any caller does" },
  schedule: { may: ["base", "pool/ports"], because: "schedule/ carries work, and does not know what for" },
  observe: { may: ["base"], because: "observe/ listens; it calls nobody" },
};

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
    places.some((place) => source.path.startsWith(place))
      ? []
      : [...source.code.matchAll(pattern)].map((match) => `says ${match[0].replaceAll(/\s+/g, " ")}`),
});

export const folderRules: readonly Rule[] = [
  ...Object.entries(walls).map(([folder, { may, because }]) => ({
    because,
    findFaults: (source: Source) =>
      folderOf(source.path) === folder ? imports(source, (file) => !isIn([folder, ...may], file)) : [],
  })),
  {
    because: "each folder has a wall: a new one says here what it may import",
    findFaults: ({ path }) => (isRoot(path) || walls[folderOf(path)] ? [] : ["has no wall"]),
  },
  {
    because: "scripts/ runs before anything is built and is part of nothing",
    findFaults: (source) => imports(source, (file) => file.startsWith("..")),
  },
];

// A stream is a value until somebody reads it.
const pureBuiltIns = ["node:crypto", "node:util", "node:events", "node:path", "node:net", "node:stream"];

export const packageRules: readonly Rule[] = [
  belongs(/^ioredis$/, ["store/"], "ioredis belongs to store/: Redis is reached through scripts"),
  belongs(/^bullmq$/, ["schedule/"], "bullmq belongs to schedule/: it carries work, never acquire"),
  belongs(
    /^(fastify|@fastify\/.*|ajv|ajv-formats)$/,
    ["http/", "form/"],
    "fastify belongs to http/ and to form/, which have a server each",
  ),
  belongs(
    /^playwright-core$/,
    ["browser/", "daemon/announce.ts"],
    "playwright-core belongs to browser/ (daemon/announce.ts prints a script that uses it)",
  ),
  belongs(
    /^tar-stream$/,
    ["browser/profile/pack-profile.ts", "browser/profile/unpack-profile.ts"],
    "tar-stream is for profiles on their way out of and into a browser's directory",
  ),
  belongs(
    /^jose$/,
    ["oidc/", "vault/collection-form.ts", "vault/encryption/transport-key.ts"],
    "jose belongs to oidc/, which judges people's tokens, and to what comes to a vault encrypted",
  ),
  belongs(
    /^p-queue$/,
    ["node/", "audit/"],
    "p-queue bounds what one node does, and what is read of the audit log",
  ),
  belongs(
    /^chromium-bidi$/,
    ["gateway/bidi/mapper.ts"],
    "chromium-bidi is reached by files that may move with any release: one file of ours knows them",
  ),
  belongs(/^ws$/, ["gateway/"], "ws belongs to gateway/: the gateway is the only WebSocket server"),
  belongs(
    /^@kubernetes\/client-node$/,
    ["operator/cluster.ts", "daemon/operator.ts"],
    "the client of Kubernetes belongs to operator/cluster.ts: 57 MB that only the operator pays for",
  ),
  belongs(/^yauzl$/, ["archive/"], "yauzl belongs to archive/: archives are read nowhere else"),
  belongs(
    /^@opentelemetry\//,
    ["telemetry/export/"],
    "OpenTelemetry's packages belong to telemetry/export/: 15 MiB that only those pay who export",
  ),
  belongs(/^socks$/, ["egress/"], "socks belongs to egress/: the way out of a browser"),
  belongs(
    /^koffi$/,
    ["http/settle.ts", "http/send-buffer.ts", "browser/resources/", "daemon/time-slice.ts", "egress/peer/"],
    "koffi is for calls of the C library that Node.js lacks (in egress/namespace/helper.mjs besides)",
  ),
  belongs(
    /^(@aws-sdk\/.*|@mongodb-js\/zstd)$/,
    ["archive/", "audit/export/aws-"],
    "S3 and zstd belong to archive/: others are given archives and streams (audit/ delivers to others' buckets)",
  ),
  belongs(
    /^(pino|prom-client)$/,
    ["observe/"],
    "pino and prom-client belong to observe/: others are given a Log and counters",
  ),
  belongs(
    /^(node:)?child_process$/,
    // The lock on the data directory is the private Redis's: flock(1) is how Node.js reaches the kernel's.
    ["browser/", "store/private/", "egress/namespace/", "gateway/bidi/"],
    "processes are started by browser/, the private Redis of store/, the namespace tier of egress/ and the BiDi mappers of gateway/ only",
  ),
  {
    because:
      "spec/, access/, pool/, lease/, vault/ and registry/ do no I/O: rules take values and return values",
    findFaults: (source) =>
      ["spec", "access", "pool", "lease", "vault", "registry"].includes(folderOf(source.path))
        ? source.packages
            .filter((name) => name.startsWith("node:") && !pureBuiltIns.includes(name))
            .map((name) => `imports ${name}`)
        : [],
  },
  {
    because: "a built-in module is named with node:, so that no package can take its place",
    findFaults: (source) =>
      source.packages
        .filter((name) => ["fs", "net", "http", "path", "os", "crypto", "child_process"].includes(name))
        .map((name) => `imports ${name}`),
  },
];

export const wordRules: readonly Rule[] = [
  confined(
    /\bprocess\.env\b|\benv\b.*\bfrom\s+"node:process"/g,
    ["config/config.ts", "daemon/announce.ts"],
    "the environment is read by config/config.ts only, validated (daemon/announce.ts prints a script that reads it)",
  ),
  confined(
    /(?<!typeof )\bimport\(|\bcreateRequire\b/g,
    [
      "base/at-first-use.ts",
      "main.ts",
      "daemon/roles.ts",
      "daemon/archives.ts",
      "daemon/time-slice.ts",
      "browser/resources/",
      "http/send-buffer.ts",
      "http/settle.ts",
      "egress/peer/",
    ],
    "import() never forgets that it has failed: it is for a daemon's start, and what is loaded later is loaded by atFirstUse",
  ),
  confined(
    /\bprocess\.exit\s*\(/g,
    ["main.ts", "gateway/bidi/mapper-process.ts"],
    "main.ts ends the process, after one shutdown; a mapper ends with its sockets",
  ),
  confined(
    /\bDate\.now\b|\bnew Date\(\s*\)|\bperformance\.now\b|(?<![.\w])setTimeout\s*\(|(?<![.\w])setInterval\s*\(|"node:timers[^"]*"/g,
    ["base/"],
    "time comes through a Clock (base/clock.ts), so that a test can drive it",
  ),
  {
    because: "secrets are compared by timingSafeEqual, whose time tells nothing of them",
    findFaults: ({ path, code }) =>
      path.startsWith("base/crypto/")
        ? [...code.matchAll(/\.equals\(|\bcompare\(|\breveal\(\)\s*[!=]==?/g)].map(([text]) => `says ${text}`)
        : [],
  },
  confined(
    /^export (?:type )?(?:\*|\{[^}]*\} from\b).*/gm,
    [],
    "nothing is exported a second time by another file: the import graph shows who uses what",
  ),
];

/** `pool/fill.ts imports ioredis: ioredis belongs to store/ …` for every offence. */
export const faultsOf = (rules: readonly Rule[], sources: readonly Source[]): string[] =>
  sources.flatMap((source) =>
    rules.flatMap((rule) =>
      rule.findFaults(source).map((fault) => `${source.path} ${fault}: ${rule.because}`),
    ),
  );

const circlesReason =
  "files that import each other, if only types, can only be read together: what both need stands in a third";

/**
 * Each import that closes a circle, found by walking from every file in turn. Imports of types count: they do
 * nothing at run time, and bind a reader all the same.
 */
export function circlesIn(sources: readonly Source[]): string[] {
  const filesOf = new Map(sources.map(({ path, files }) => [path, files]));
  const walked = new Set<string>();
  const walk = (path: string, way: readonly string[]): string[] => {
    const start = way.indexOf(path);
    if (start >= 0) return [`${[...way.slice(start), path].join(" imports ")}: ${circlesReason}`];
    if (walked.has(path)) return [];
    walked.add(path);
    return (filesOf.get(path) ?? []).flatMap((file) => walk(file, [...way, path]));
  };
  return sources.flatMap(({ path }) => walk(path, []));
}
