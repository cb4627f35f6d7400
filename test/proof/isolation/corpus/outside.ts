import { execFile } from "node:child_process";
import { readdir, readlink } from "node:fs/promises";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { asUser, factOf, isRoot, processesOf, withDescendants } from "../programs.js";
import type { ClientAttempt, Work } from "./attempt.js";

const run = promisify(execFile);

const looked = new WeakMap<Work["browser"], Promise<readonly number[]>>();
/** Looked up once for each browser, when it has a page of a site: all of these look at the same processes. */
function pidsOf(work: Work): Promise<readonly number[]> {
  const found =
    looked.get(work.browser) ??
    work
      .open()
      .then(() => processesOf(work.browser.root))
      .then(withDescendants);
  looked.set(work.browser, found);
  return found;
}

/**
 * What is seen of a browser's processes from outside: `look` is given each of Chromium's, and says what is
 * wrong with it.
 */
const seen = (
  name: string,
  look: (pid: number, work: Work) => Promise<string | undefined>,
  other: Partial<ClientAttempt> = {},
): ClientAttempt => ({
  name: `outside: ${name}`,
  vector: "outside",
  succeedsPlain: true,
  isQuick: true,
  ...other,
  async run(work) {
    for (const pid of await pidsOf(work)) {
      const wrong = await look(pid, work);
      // One that has ended meanwhile has no command line any more, and nothing can be said of it.
      if (wrong !== undefined && (await factOf(pid, "cmdline")) !== "") work.saw(`process ${pid}: ${wrong}`);
    }
  },
});

const valueIn = async (pid: number, name: string): Promise<string> =>
  new RegExp(`^${name}:\\s*(.*)$`, "m").exec(await factOf(pid, "status"))?.[1] ?? "";
const isFirst = async (pid: number): Promise<boolean> => !(await factOf(pid, "cmdline")).includes("--type=");
const namespaceOf = (pid: number, kind: string): Promise<string> =>
  readlink(`/proc/${pid}/ns/${kind}`).catch(() => "");

/** What its descriptors lead to. */
const linksOf = async (pid: number): Promise<string[]> => {
  const names = await readdir(`/proc/${pid}/fd`).catch(() => []);
  return await Promise.all(names.map((name) => readlink(`/proc/${pid}/fd/${name}`).catch(() => "")));
};

/** The default of `browser.max_open_files`. */
export const mostFiles = 4096;

export const outside: readonly ClientAttempt[] = [
  seen(
    "one of its processes may open any number of files",
    async (pid) => {
      const most = Number(/^Max open files +\d+ +(\d+) /m.exec(await factOf(pid, "limits"))?.[1]);
      return most > mostFiles ? `it may raise its limit of open files to ${most}` : undefined;
    },
    { succeedsPlain: { because: "the machine's own limit may be as low" } },
  ),
  seen(
    "its processes can gain privileges",
    async (pid) => ((await valueIn(pid, "NoNewPrivs")) === "1" ? undefined : "no_new_privs is not set"),
    { succeedsPlain: { because: "Chromium's own sandbox may set it on all it can" } },
  ),
  seen("the bounding set of its first process", async (pid) => {
    const bound = await valueIn(pid, "CapBnd");
    // In its sandbox's own user namespace Chromium has what that gives.
    return /^0+$/.test(bound) || !(await isFirst(pid)) ? undefined : `CapBnd is ${bound}`;
  }),
  seen(
    "capabilities of its first process",
    async (pid) => {
      const effective = await valueIn(pid, "CapEff");
      return /^0+$/.test(effective) || !(await isFirst(pid)) ? undefined : `CapEff is ${effective}`;
    },
    { succeedsPlain: { because: "an ordinary user has none" } },
  ),
  seen(
    "its renderers are in Chromium's sandbox",
    async (pid) => {
      if (!(await factOf(pid, "cmdline")).includes("--type=renderer")) return undefined;
      return (await valueIn(pid, "Seccomp")) === "2" ? undefined : "a renderer without seccomp";
    },
    { succeedsPlain: { because: "an ordinary user's Chromium has its sandbox" } },
  ),
  seen("it leaves core files", async (pid) =>
    /^Max core file size\s+0\s+0\s/m.test(await factOf(pid, "limits")) ? undefined : "core files are not off",
  ),
  seen("it is in the host's process namespace", async (pid) =>
    (await namespaceOf(pid, "pid")) === (await namespaceOf(process.pid, "pid")) ? "in the host's" : undefined,
  ),
  seen("it is in the host's mount namespace", async (pid) =>
    (await namespaceOf(pid, "mnt")) === (await namespaceOf(process.pid, "mnt")) ? "in the host's" : undefined,
  ),
  seen("it is in the host's namespaces of IPC and names", async (pid) => {
    const shared = await Promise.all(
      ["ipc", "uts"].map(async (kind) =>
        (await namespaceOf(pid, kind)) === (await namespaceOf(process.pid, kind)) ? kind : "",
      ),
    );
    return shared.some((kind) => kind !== "")
      ? `in the host's ${shared.filter((kind) => kind !== "").join(" and ")}`
      : undefined;
  }),
  seen(
    "its environment holds what others keep",
    async (pid, { machine }) => {
      const text = await factOf(pid, "environ");
      return (
        [...machine.words].find(([words]) => text.includes(words))?.[1] ?? /REMUDA_[A-Z_]+/.exec(text)?.[0]
      );
    },
    { succeedsPlain: { because: "whoever starts it alone chooses its environment" } },
  ),
  seen(
    "its command line holds what others keep",
    async (pid, { machine }) => {
      const text = await factOf(pid, "cmdline");
      return [...machine.words].find(([words]) => text.includes(words))?.[1];
    },
    { succeedsPlain: { because: "its command line is its own" } },
  ),
  seen(
    "descriptors of files that are not its own",
    async (pid, { machine, browser }) => {
      const isForeign = (path: string): boolean =>
        path.startsWith(dirname(machine.scratchDirectory)) && !path.startsWith(`${browser.root}/`);
      return (await linksOf(pid)).find(isForeign);
    },
    { succeedsPlain: { because: "nothing of the corpus hands descriptors on" } },
  ),
  seen(
    "sockets and pipes that it shares with the daemon",
    async (pid, { machine }) => {
      const theirs = new Set(
        (await linksOf(machine.daemonPid)).filter((name) => /^(?:socket|pipe):/.test(name)),
      );
      const shared = (await linksOf(pid)).filter((name) => theirs.has(name));
      // Its pipes of CDP end in the daemon by other ends; an inherited end would be the same.
      return shared.length > 4 ? `${shared.length} of them` : undefined;
    },
    { succeedsPlain: { because: "nothing of the corpus hands descriptors on" } },
  ),
  {
    name: "outside: another user of the machine reads the daemon's files",
    vector: "outside",
    isQuick: true,
    succeedsPlain: { because: "they are the daemon's in either case" },
    async run({ machine }) {
      const through = isRoot ? asUser(machine.uid + 1) : [];
      const kept = machine.targets.filter(({ what }) => /secret|key|Redis|another browser/.test(what));
      const [program = "cat", ...args] = [...through, "cat"];
      return (
        isRoot &&
        (await Promise.all(
          kept.map(({ path }) =>
            run(program, [...args, machine.seen(path)]).then(
              ({ stdout }) => stdout,
              () => "",
            ),
          ),
        ))
      );
    },
  },
];
