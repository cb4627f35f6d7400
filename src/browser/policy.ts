import { constants } from "node:fs";
import { access, cp, mkdir, readlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type Confinement, confined, type Mount, type Tools } from "./confinement.js";
import type { LaunchSpec } from "./chromium.js";
import type { Forced } from "./forced.js";
import { type ForcedEntry, managedPolicy, type Policy } from "./managed-policy.js";
import { run } from "./run.js";

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
  await writePolicy(join(source, managed), managedPolicy({}));
  return source;
}

/**
 * Puts the policy of one browser into its directory `root`, where that is its working directory or what it returns has to
 * be mounted for it. The files are the daemon's, so a browser with a uid of its own cannot change them.
 */
export async function putPolicy(means: PolicyMeans, root: string, asked: Asked): Promise<Mount | undefined> {
  if (means.kind === "none") return refuseWithout(asked);
  const source = join(root, "policy");
  if (means.kind === "mount") await cp(means.template.source, source, { recursive: true });
  const policy = managedPolicy(asked, await writeUpdates(join(source, updates), asked.forced ?? []));
  await writePolicy(means.kind === "mount" ? join(source, managed) : source, policy);
  return means.kind === "mount" ? { ...means.template, source } : undefined;
}

interface Asked extends Pick<LaunchSpec, "policy" | "egress"> {
  /** Extensions that it has to install. */
  readonly forced?: readonly Forced[];
}

/** What we pin is held by other means then, but nothing takes the place of a caller's policy. */
function refuseWithout({ policy = {}, forced = [] }: Asked): undefined {
  const isAsked = Object.keys(policy).length > 0;
  if (!isAsked && forced.length === 0) return undefined;
  const what = isAsked ? "browser_policy was asked for" : "an extension has to be installed by policy";
  throw new Error(`no policy can be given to a browser of this machine, and ${what}: ${remedy}`);
}

/** Chromium reads no directory below the one of its policies. */
const updates = "updates";

/** From these files Chromium installs packed extensions: no network is asked (measured, 156). */
async function writeUpdates(directory: string, forced: readonly Forced[]): Promise<readonly ForcedEntry[]> {
  if (forced.length > 0) await mkdir(directory, { recursive: true, mode: 0o755 });
  return await Promise.all(forced.map(async ({ id, crx, version }) => {
    const path = join(directory, `${id}.xml`);
    const check = `<updatecheck codebase="${escaped(pathToFileURL(crx).href)}" version="${version}"/>`;
    const text = `<gupdate xmlns="http://www.google.com/update2/response" protocol="2.0"><app appid="${id}">${check}</app></gupdate>`;
    await writeFile(path, text, { mode: 0o644 });
    return { id, updateUrl: pathToFileURL(path).href };
  }));
}

const escaped = (text: string): string => text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);

const remedy = `let the daemon mount (root or user namespaces), or link /etc/chromium/${managed} to ${workingDirectoryLink}`;

async function writePolicy(directory: string, policy: Policy): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o755 });
  await writeFile(join(directory, fileName), JSON.stringify(policy), { mode: 0o644 });
}
