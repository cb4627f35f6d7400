import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { LaunchSpec } from "../chromium.js";
import type { ForcedExtension } from "../extensions/forced-extensions.js";
import { type ForcedEntry, managedPolicy } from "./managed-policy.js";

/**
 * The machine's own policy files, by their path below Chromium's policy directory, which every browser gets
 * besides ours.
 */
export type MachinePolicies = ReadonlyMap<string, string>;

/** The directory in which a build of Chromium looks for its configuration. */
export const systemDirectoryOf = (executable: string): string =>
  executable.includes("google/chrome") ? "/etc/opt/chrome" : "/etc/chromium";

const kinds = ["managed", "recommended"];

/**
 * Reads the machine's policies once per daemon. A file that we may not read Chromium could not read either.
 */
export async function findMachinePolicies(configuration: string): Promise<MachinePolicies> {
  const top = join(configuration, "policies");
  const names = (await Promise.all(kinds.map((kind) => filesIn(top, kind)))).flat();
  const texts = await Promise.all(
    names.map((name) => readFile(join(top, name), "utf8").catch(() => undefined)),
  );
  return new Map(
    names.flatMap((name, at): [string, string][] => (texts[at] === undefined ? [] : [[name, texts[at]]])),
  );
}

async function filesIn(top: string, kind: string): Promise<string[]> {
  const names = await readdir(join(top, kind)).catch(() => []);
  return names.filter((name) => name.endsWith(".json")).map((name) => join(kind, name));
}

export interface PolicyWanted extends Pick<LaunchSpec, "policy" | "egress" | "isForOne"> {
  /** Extensions that it has to install. */
  readonly forced?: readonly ForcedExtension[];
}

/**
 * Where two files set the same policy, Chromium takes the one whose name sorts last (Chromium 156,
 * docs/chromium.md#enterprise-policy).
 */
const fileName = join("managed", "zz-remuda.json");

/** This lies below the directory of its policies, in a place where Chromium looks for no policy. */
const updates = "updates";

interface PolicyPlaces {
  /** The browser's own directory. */
  readonly root: string;
  /** The path at which Chromium sees what is written there. */
  readonly shownAt: string;
  readonly machine: MachinePolicies;
}

/**
 * Writes the policies of one browser. The files are the daemon's, and its private root shows them read-only.
 */
export async function putPolicy(
  { root, shownAt, machine }: PolicyPlaces,
  wanted: PolicyWanted,
): Promise<void> {
  const directory = join(root, "policy");
  await mkdir(join(directory, "managed"), { recursive: true, mode: 0o755 });
  const entries = await writeUpdates(
    { directory: join(directory, updates), shownAt: join(shownAt, updates) },
    wanted.forced ?? [],
  );
  await writeFile(join(directory, fileName), JSON.stringify(managedPolicy(wanted, entries)), { mode: 0o644 });
  if (machine.size === 0) return;
  await mkdir(join(directory, "recommended"), { recursive: true, mode: 0o755 });
  await Promise.all(
    [...machine].map(([name, text]) => writeFile(join(directory, name), text, { mode: 0o644 })),
  );
}

/**
 * No policy reaches a browser without a private root. What we pin is then held by other means, but a caller's
 * policy is not, so this throws where one was asked for.
 */
export function refusePolicy({ policy = {}, forced = [] }: PolicyWanted): void {
  const isAsked = Object.keys(policy).length > 0;
  if (!isAsked && forced.length === 0) return;
  const what = isAsked ? "browser_policy was asked for" : "an extension has to be installed by policy";
  throw new Error(
    `no policy can be given to a browser without a private root, and ${what}: see docs/isolation.md`,
  );
}

/**
 * Chromium installs packed extensions from these files without asking any network (Chromium 156,
 * docs/chromium.md#extensions).
 */
async function writeUpdates(
  at: { directory: string; shownAt: string },
  forced: readonly ForcedExtension[],
): Promise<readonly ForcedEntry[]> {
  if (forced.length > 0) await mkdir(at.directory, { recursive: true, mode: 0o755 });
  return await Promise.all(
    forced.map(async ({ id, crx, version }) => {
      const name = `${id}.xml`;
      const check = `<updatecheck codebase="${escaped(pathToFileURL(crx).href)}" version="${version}"/>`;
      const text = `<gupdate xmlns="http://www.google.com/update2/response" protocol="2.0"><app appid="${id}">${check}</app></gupdate>`;
      await writeFile(join(at.directory, name), text, { mode: 0o644 });
      return { id, updateUrl: pathToFileURL(join(at.shownAt, name)).href };
    }),
  );
}

const escaped = (text: string): string => text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
