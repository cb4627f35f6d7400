import { existsSync, readFileSync } from "node:fs";
import { delimiter, isAbsolute, join, resolve } from "node:path";
import { Refusal, say } from "./say.mjs";
import { runQuietly, runWithProgress } from "./spawn.mjs";

const directories = [
  ...(process.env.PATH ?? "").split(delimiter),
  "/usr/local/sbin",
  "/usr/sbin",
  "/sbin",
  "/opt/homebrew/bin",
];
const isFound = (place) =>
  isAbsolute(place) ? existsSync(place) : directories.some((directory) => existsSync(join(directory, place)));

/**
 * What may be missing: where it is looked for, and what brings it. The places are those of
 * src/browser/executable.ts.
 */
export const tools = {
  chromium: {
    places: [
      "/usr/lib/chromium/chromium",
      "/usr/lib64/chromium-browser/chromium-browser",
      "/usr/lib/chromium-browser/chromium-browser",
      "/opt/google/chrome/chrome",
      "/Applications/Chromium.app/Contents/MacOS/Chromium",
      "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    ],
    debian: "chromium",
    fedora: "chromium",
    mac: "--cask google-chrome",
  },
  shell: {
    places: [
      "/usr/lib/chromium/chromium-headless-shell",
      "/usr/lib64/chromium-browser/headless_shell",
      "/usr/lib64/chromium-browser/chromium-headless-shell",
      "/opt/chrome-headless-shell/chrome-headless-shell",
    ],
    debian: "chromium-headless-shell",
    fedora: "chromium-headless",
  },
  redis: { places: ["redis-server"], debian: "redis-server", fedora: "/usr/bin/redis-server", mac: "redis" },
  display: { places: ["Xvfb"], debian: "xvfb", fedora: "/usr/bin/Xvfb" },
  root: { places: ["bwrap"], debian: "bubblewrap", fedora: "bubblewrap" },
  parent: { places: ["setpriv"], debian: "util-linux", fedora: "util-linux" },
  limits: { places: ["/usr/bin/prlimit"], debian: "util-linux", fedora: "util-linux" },
  compression: { places: ["zstd"], debian: "zstd", fedora: "zstd", mac: "zstd" },
  containers: { places: ["crun"], debian: "crun", fedora: "crun" },
  /** Fedora has no AppArmor. */
  profiles: { places: ["apparmor_parser"], debian: "apparmor" },
  images: { places: ["buildah"], debian: "buildah", fedora: "buildah" },
  bootstrap: { places: ["mmdebstrap"], debian: "mmdebstrap" },
  certificates: { places: ["openssl"], debian: "openssl", fedora: "openssl" },
  versions: { places: ["git"], debian: "git", fedora: "git" },
  network: { places: ["ip"], debian: "iproute2", fedora: "iproute" },
};

/** The tools that have to be there, and those that are only installed along with others. */
export const needsOfTests = {
  required: [
    "chromium",
    "shell",
    "redis",
    "display",
    "root",
    "parent",
    "limits",
    "network",
    "compression",
    "certificates",
    "versions",
    "profiles",
  ],
  optional: [],
};

/** The proof of isolation tries containers, unless it is told to leave them out. */
export const needsOfIsolationProof = (args) => ({
  required: [...needsOfTests.required, ...(wantsContainers(args) ? ["containers"] : [])],
  optional: [],
});

const wantsContainers = (args) => {
  if (args.includes("--without-containers") || args.includes("--help")) return false;
  const tier = args[args.indexOf("--tier") + 1];
  return !args.includes("--tier") || tier?.split(",").includes("container") === true;
};

function findSettings(root, env) {
  try {
    return JSON.parse(readFileSync(resolve(root, env.REMUDA_CONFIG || "config/default.json"), "utf8")) ?? {};
  } catch {
    // The daemon refuses the file with the reason; here it only decides what is installed.
    return {};
  }
}

/**
 * What the daemon needs under its configuration: no Redis where one is given, no browser where another is or
 * none runs.
 */
export function needsOfConfig(root, env = process.env) {
  const settings = findSettings(root, env);
  const hasRedis = Boolean(env.REDIS_URL || settings.redis?.url || settings.redis?.executable);
  const hasChromium = Boolean(env.REMUDA_CHROMIUM || settings.browser?.executable);
  const role = env.REMUDA_ROLE || settings.role;
  if (role === "operator") return { required: [], optional: [] };
  const hasBrowsers = role !== "control";
  const browsers = [...(hasChromium ? [] : ["chromium"]), "display", "root", "limits"];
  return {
    required: ["parent", ...(hasRedis ? [] : ["redis"]), ...(hasBrowsers ? browsers : [])],
    optional: hasBrowsers ? ["shell"] : [],
  };
}

const system = () => {
  if (process.platform === "darwin") return "mac";
  const release = existsSync("/etc/os-release") ? readFileSync("/etc/os-release", "utf8") : "";
  const ids = (/^ID=(.*)$/m.exec(release)?.[1] ?? "") + " " + (/^ID_LIKE=(.*)$/m.exec(release)?.[1] ?? "");
  return ["ubuntu", "debian", "fedora"].find((name) => ids.includes(name)) ?? "other";
};

const chrome = "https://dl.google.com/linux/direct/google-chrome-stable_current_amd64.deb";

/** Whether a system of that name has the tool at all: macOS has few of them, and Fedora no AppArmor. */
export const isKnownTo = (name, tool) =>
  (name !== "mac" && name !== "fedora") || tools[tool][name] !== undefined;

/** The exact command that brings the tools. */
export function commandFor(name, missing) {
  const packages = (kind) => [...new Set(missing.map((tool) => tools[tool][kind]).filter(Boolean))].join(" ");
  if (name === "fedora") return `sudo dnf install ${packages("fedora")}`;
  if (name === "mac")
    return missing
      .map((tool) => tools[tool].mac && `brew install ${tools[tool].mac}`)
      .filter(Boolean)
      .join(" && ");
  if (name !== "ubuntu")
    return `sudo apt-get update && sudo apt-get install --no-install-recommends ${packages("debian")}`;
  // Ubuntu's chromium packages are a snap, which confines the browser in ways of its own.
  const others = missing
    .filter((tool) => tool !== "chromium" && tool !== "shell")
    .map((tool) => tools[tool].debian);
  const files = missing.includes("chromium") ? ["./google-chrome-stable_current_amd64.deb"] : [];
  const fetch = missing.includes("chromium") ? `wget ${chrome} && ` : "";
  return `${fetch}sudo apt-get update && sudo apt-get install ${[...new Set(others), ...files].join(" ")}`;
}

const advice = (missing) => {
  const here = system();
  if (here !== "other") return `Type this, then start again:\n\n  ${commandFor(here, missing)}\n`;
  const titles = { debian: "Debian", ubuntu: "Ubuntu", fedora: "Fedora", mac: "macOS" };
  const lines = Object.entries(titles).map(([name, title]) => `  ${title}: ${commandFor(name, missing)}`);
  return `Install them, then start again:\n\n${lines.join("\n")}\n`;
};

/** How apt may be called here, or undefined. */
async function findApt() {
  if (system() !== "debian" || !existsSync("/usr/bin/apt-get")) return undefined;
  const environment = ["env", "DEBIAN_FRONTEND=noninteractive"];
  if (process.getuid() === 0) return environment;
  const { code } = await runQuietly("sudo", ["-n", "true"]);
  return code === 0 ? ["sudo", "-n", ...environment] : undefined;
}

async function apt(prefix, args) {
  const wait = ["-o", "DPkg::Lock::Timeout=300"];
  const { code, lines, seconds } = await runWithProgress(`apt-get ${args[0]}`, [
    ...prefix,
    "apt-get",
    ...wait,
    ...args,
  ]);
  if (code !== 0) throw new Refusal(`apt-get ${args.join(" ")} failed:\n${lines.join("\n")}`);
  return seconds;
}

async function isOffered(name) {
  const { output } = await runQuietly("apt-cache", ["policy", name]);
  return /Candidate: (?!\(none\))/.test(output);
}

async function install(prefix, missing, optional) {
  say("updating the list of Debian packages (apt-get update)");
  await apt(prefix, ["update"]);
  const wanted = [...new Set(missing.map((tool) => tools[tool].debian))];
  for (const tool of optional) if (await isOffered(tools[tool].debian)) wanted.push(tools[tool].debian);
  say(`installing ${wanted.join(", ")} (apt-get install)`);
  const seconds = await apt(prefix, ["install", "-y", "--no-install-recommends", ...wanted]);
  say(`Debian packages installed in ${seconds}`);
}

/** Sees to the programs Remuda works with: through apt where it may, else by telling what to type. */
export async function ensureSystem({ required, optional }) {
  const isMissing = (tool) => !tools[tool].places.some(isFound);
  const isOurs = (tool) => isKnownTo(system(), tool);
  const missing = required.filter((tool) => isMissing(tool) && isOurs(tool));
  if (missing.length === 0) return;
  const prefix = await findApt();
  if (!prefix) {
    const names = [...new Set(missing.map((tool) => tools[tool].debian))].join(", ");
    throw new Refusal(
      `These programs are missing and cannot be installed from here: ${names}.\n${advice(missing)}`,
    );
  }
  await install(prefix, missing, optional.filter(isMissing));
  const still = required.filter((tool) => isMissing(tool) && isOurs(tool));
  if (still.length > 0) throw new Refusal(`Still missing after the installation: ${still.join(", ")}.`);
}
