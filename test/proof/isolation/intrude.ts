import { execFile, spawn } from "node:child_process";
import { type FileHandle, open, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { systemClock } from "../../../src/base/clock.js";
import { within } from "../../../src/base/deadline.js";
import { asUser, endOf, factOf } from "./programs.js";

/**
 * Where the hostile program runs: in the place of a browser's first process, or free, as the daemon's user or
 * as root.
 */
export type Place =
  | { readonly kind: "browser"; readonly pid: number }
  | { readonly kind: "user"; readonly uid: number }
  | { readonly kind: "root" };

/** What the program is told; a list is told as often as it has members. */
export type Told = Readonly<Record<string, string | number | readonly (string | number)[]>>;

const program = join(import.meta.dirname, "intruder.pl");
const run = promisify(execFile);
const limitMs = 120_000;
/** The descriptors by which it gets at Perl and a library of Perl's, which no private root need show. */
const perlAt = "/proc/self/fd/3";
const libraryAt = "/proc/self/fd/4";

/**
 * Runs the attempts named, one after the other; gives what each got. Throws where the program did not come to
 * its end.
 */
export async function intrude(
  place: Place,
  attempts: readonly string[],
  told: Told,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const perl = (await run("sh", ["-c", "command -v perl"])).stdout.trim();
  const library = /libcrypt\S* => (\S+)/.exec((await run("ldd", [perl])).stdout)?.[1];
  const words = Object.entries({ ...told, attempt: attempts }).flatMap(([name, given]) =>
    [given].flat().map((each) => `${name}=${each}`),
  );
  const held = await Promise.all([open(perl), ...(library === undefined ? [] : [open(library)])]);
  try {
    const [first = "", ...rest] = [...(await through(place)), perlAt, "-", ...words];
    const output = await outputOf(first, rest, held);
    const lines = output.split("\n").map((line) => line.split("\t") as [string, string?]);
    const missing = attempts.find((name) => !lines.some(([row, text]) => row === name && text === "over"));
    if (missing !== undefined)
      throw new Error(`the hostile program did not come to ${missing}: ${output.slice(-500)}`);
    return new Map(attempts.map((name) => [name, textsOf(lines, name)]));
  } finally {
    await Promise.all(held.map((file) => file.close()));
  }
}

const textsOf = (lines: readonly (readonly [string, string?])[], name: string): string[] =>
  lines
    .filter(([row, text]) => row === name && text !== "over")
    .map(([, text = ""]) => Buffer.from(text, "hex").toString("latin1"));

async function outputOf(
  first: string,
  args: readonly string[],
  [perl, library]: readonly FileHandle[],
): Promise<string> {
  const child = spawn(first, args, {
    stdio: ["pipe", "pipe", "pipe", perl?.fd ?? "ignore", library?.fd ?? "ignore"],
    env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", ...(library && { LD_PRELOAD: libraryAt }) },
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding("latin1").on("data", (text: string) => (output += text));
  // One that ends before it has read its program says why by itself.
  child.stdin?.on("error", () => {}).end(await readFile(program));
  await within(systemClock, { what: "the hostile program", limitMs }, endOf(child)).finally(() =>
    child.kill("SIGKILL"),
  );
  return output;
}

/** What in front of a command puts it there. */
async function through(place: Place): Promise<string[]> {
  if (place.kind === "user") return asUser(place.uid);
  // What it mounts or names is undone with these namespaces.
  if (place.kind === "root") return ["unshare", "--mount", "--uts", "--"];
  return await intoBrowser(place.pid);
}

/** Enters the namespaces, cgroups, uid and limits of a process; without new privileges if that has none. */
async function intoBrowser(pid: number): Promise<string[]> {
  const [status, limits, uidMap, gidMap] = await Promise.all(
    ["status", "limits", "uid_map", "gid_map"].map((file) => factOf(pid, file)),
  );
  const idOf = (name: string, map = ""): number =>
    inside(Number(new RegExp(`^${name}:\\t\\d+\\t(\\d+)`, "m").exec(status ?? "")?.[1]), map);
  const limitOf = (name: string): string =>
    new RegExp(`^${name}\\s+(\\S+)\\s+(\\S+)`, "m")
      .exec(limits ?? "")
      ?.slice(1, 3)
      .join(":") ?? "unlimited";
  const isBarred = /^NoNewPrivs:\t1/m.test(status ?? "");
  return [
    "sh",
    "-c",
    'for group in $0; do echo $$ > "$group/cgroup.procs"; done 2>/dev/null; exec "$@"',
    (await cgroupsOf(pid)).join(" "),
    "prlimit",
    `--nproc=${limitOf("Max processes")}`,
    `--nofile=${limitOf("Max open files")}`,
    `--core=${limitOf("Max core file size")}`,
    "--",
    ...(isBarred ? ["setpriv", "--no-new-privs", "--"] : []),
    "nsenter",
    `--target=${pid}`,
    "--all",
    `--setuid=${idOf("Uid", uidMap)}`,
    `--setgid=${idOf("Gid", gidMap)}`,
    "--",
  ];
}

/**
 * The number that an id outside has in a user namespace: each line of its map is the first inside, the first
 * outside and how many.
 */
function inside(id: number, map: string): number {
  for (const line of map.trim().split("\n")) {
    const [first = 0, outside = 0, count = 0] = line.trim().split(/\s+/).map(Number);
    if (id >= outside && id < outside + count) return first + id - outside;
  }
  return id;
}

/** The directories of a process's cgroups, where this process sees them. */
async function cgroupsOf(pid: number): Promise<string[]> {
  const [theirs, ours] = await Promise.all([factOf(pid, "cgroup"), factOf(process.pid, "cgroup")]);
  return theirs
    .split("\n")
    .filter((line) => line !== "" && !ours.includes(`${line}\n`))
    .flatMap((line) => {
      const [, controllers = "", path = ""] = line.split(":");
      return controllers === ""
        ? [`/sys/fs/cgroup${path}`, `/sys/fs/cgroup/unified${path}`]
        : [`/sys/fs/cgroup/${controllers.replace(/^name=/, "")}${path}`];
    });
}
