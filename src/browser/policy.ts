import { constants } from "node:fs";
import { access, cp, mkdir, readlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Confinement, confined, type Mount, type Tools } from "./confinement.js";
import { run } from "./run.js";

/**
 * The managed policy every full Chromium gets. What closes the host's files comes first; the rest keeps a browser nobody
 * looks at from asking questions. Nothing here may touch remote debugging: `RemoteDebuggingAllowed` false leaves no CDP
 * at all, and a browser that survives the end of its pipe (chromium.md, What does NOT work, 7 and 8).
 */
export const pinnedPolicy = {
  // Developer tools read any file for whoever scripts their page; the other two open them.
  URLBlocklist: ["file://*", "devtools://*", "chrome://inspect", "chrome://serviceworker-internals"],
  // chrome://policy/test replaces the policies of a running browser, so a CDP client could undo the line above.
  PolicyTestPageEnabled: false,
  // Without it --keep-alive-for-test does not hold a headful browser reliably: 5 of 60 exited (measured, 156).
  BackgroundModeEnabled: true,
  BrowserSignin: 0,
  // Our own switches would make headful Chromium show a bar that takes 56 pixels from the page (measured, 156).
  CommandLineFlagSecurityWarningsEnabled: false,
  DefaultBrowserSettingEnabled: false,
  MetricsReportingEnabled: false,
  PasswordManagerEnabled: false,
  PromotionsEnabled: false,
  SearchSuggestEnabled: false,
  SyncDisabled: true,
  TranslateEnabled: false,
  // What follows closes ways round the proxy, for a browser without one too (chromium.md 5).
  WebRtcIPHandling: "disable_non_proxied_udp",
  QuicAllowed: false,
  DnsOverHttpsMode: "off",
  BuiltInDnsClientEnabled: false,
  // Looks for receivers by multicast.
  EnableMediaRouter: false,
  ExtensionSettings: {
    "*": {
      // An app has `chrome.sockets`, TCP and UDP without the proxy, and still loads on Linux; blocking a permission of that name
      // changes nothing (measured, 156).
      allowed_types: ["extension", "theme"],
      // `debugger` commands pass no gate, and its Target.setRemoteLocations has the browser dial any address itself, past the
      // proxy (measured, 156). A native host is a program outside the browser. The others change proxy, WebRTC or look up names.
      blocked_permissions: ["proxy", "privacy", "debugger", "nativeMessaging", "dns"],
    },
  },
} as const;

/** Holds a browser to its proxy whatever an extension asks for; only this beats `chrome.proxy` (chromium.md 5). */
const proxyPolicy = (proxyUrl: string): object => ({
  ProxySettings: { ProxyMode: "fixed_servers", ProxyServer: proxyUrl, ProxyBypassList: "<-loopback>" },
});

/**
 * How its policy reaches a browser. Chromium reads one fixed directory, so either the browser gets a mount namespace in
 * which that directory is its own, or the directory is a link that each process resolves in its own working directory.
 */
export type PolicyMeans =
  /** The mount that was tried: its source is the template that each browser's own is copied from. */
  | { readonly kind: "mount"; readonly template: Mount }
  | { readonly kind: "working-directory" }
  | { readonly kind: "none" };

const workingDirectoryLink = "/proc/self/cwd/policy";
const managed = "policies/managed";
/** Of two files that set the same policy, Chromium heeds the one whose name sorts last. */
const fileName = "zz-remuda.json";
const mountCheckLimitMs = 5_000;

/** Where a build of Chromium looks for its policies. */
const configurationOf = (executable: string): string =>
  executable.includes("google/chrome") ? "/etc/opt/chrome" : "/etc/chromium";

interface Wanted {
  readonly scratch: string;
  readonly executable: string;
  readonly tools: Tools;
  /** One that a browser might have; null where they have ours. */
  readonly uid: number | null;
}

/** Decides the means, once per daemon, and proves it. */
export async function preparePolicy({ scratch, executable, tools, uid }: Wanted): Promise<PolicyMeans> {
  const target = configurationOf(executable);
  const link = await readlink(join(target, managed)).catch(() => undefined);
  if (link === workingDirectoryLink) return { kind: "working-directory" };
  // A mount needs something to be mounted on; Chromium itself takes an empty directory for none.
  const isThere = await mkdir(target, { recursive: true }).then(() => true, () => false);
  if (!isThere) return { kind: "none" };
  const source = await makeTemplate(scratch, target);
  for (const by of ["root", "user-namespace"] as const) {
    const mount = { source, target, by };
    if (await isShown({ uid, mount, mayGainRights: false }, tools)) return { kind: "mount", template: mount };
  }
  return { kind: "none" };
}

/** Is the policy where Chromium will look for it, for a process so confined? */
async function isShown(confinement: Confinement & { readonly mount: Mount }, tools: Tools): Promise<boolean> {
  if (!tools.setpriv || !tools.unshare) return false;
  const look = ["/usr/bin/test", "-r", join(confinement.mount.target, managed, fileName)];
  const [program = "", ...args] = confined(tools, confinement, look);
  return (await run(program, args, mountCheckLimitMs)).succeeded;
}

/** The machine's own configuration of Chromium, and our policy with it. What we may not read, Chromium could not either. */
async function makeTemplate(scratch: string, target: string): Promise<string> {
  const source = join(scratch, "policy");
  await mkdir(source, { recursive: true });
  const filter = (path: string): Promise<boolean> => access(path, constants.R_OK).then(() => true, () => false);
  await cp(target, source, { recursive: true, force: true, filter });
  await writePolicy(join(source, managed), pinnedPolicy);
  return source;
}

/**
 * Puts the policy of one browser into its directory `root`, where that is its working directory or what it returns has to
 * be mounted for it. The files are the daemon's, so a browser with a uid of its own cannot change them.
 */
export async function putPolicy(means: PolicyMeans, root: string, proxyUrl?: string): Promise<Mount | undefined> {
  const policy = { ...pinnedPolicy, ...(proxyUrl !== undefined && proxyPolicy(proxyUrl)) };
  const source = join(root, "policy");
  if (means.kind === "working-directory") await writePolicy(source, policy);
  if (means.kind !== "mount") return undefined;
  await cp(means.template.source, source, { recursive: true });
  await writePolicy(join(source, managed), policy);
  return { ...means.template, source };
}

async function writePolicy(directory: string, policy: object): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o755 });
  await writeFile(join(directory, fileName), JSON.stringify(policy), { mode: 0o644 });
}
