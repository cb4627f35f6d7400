import { EventEmitter } from "node:events";
import { closeSync } from "node:fs";
import { Socket } from "node:net";
import { constants } from "node:os";
import { getSystemErrorName } from "node:util";
import { isMainThread } from "node:worker_threads";

/** What is needed of a process that was started, by whichever way. */
export interface StartedBrowser {
  readonly pid: number;
  readonly stdio: readonly unknown[];
  readonly stderr: unknown;
  once(event: "exit", listener: (code: number | null, signal: NodeJS.Signals | null) => void): unknown;
  once(event: "error", listener: (error: Error) => void): unknown;
}

/** What each descriptor of the process is to be, from 0 on; a number is a descriptor of ours. */
type Descriptors = readonly ("ignore" | "pipe" | number)[];

type LibraryCall = (...args: readonly unknown[]) => number;

/** Calls of the C library (posix_spawn(3), glibc 2.29), and the number of its last failure. */
interface Library {
  readonly call: Readonly<Record<"pair" | "spawn" | "wait" | keyof typeof preparing, LibraryCall>>;
  errno(): number;
}

const preparing = {
  initActions: "int posix_spawn_file_actions_init(void *actions)",
  duplicate: "int posix_spawn_file_actions_adddup2(void *actions, int from, int to)",
  openAs:
    "int posix_spawn_file_actions_addopen(void *actions, int to, const char *path, int flags, unsigned int mode)",
  enter: "int posix_spawn_file_actions_addchdir_np(void *actions, const char *path)",
  endActions: "int posix_spawn_file_actions_destroy(void *actions)",
  initAttributes: "int posix_spawnattr_init(void *attributes)",
  setFlags: "int posix_spawnattr_setflags(void *attributes, short flags)",
  setDefaults: "int posix_spawnattr_setsigdefault(void *attributes, void *signals)",
  setMask: "int posix_spawnattr_setsigmask(void *attributes, void *signals)",
} as const;

/** Undefined where the C library has not all of these. Only a main thread hears of the ends of processes. */
const library: Library | undefined =
  process.platform === "linux" && isMainThread
    ? await import("koffi")
        .then(({ default: koffi }): Library => {
          const loaded = koffi.load(null);
          const func = (declaration: string): LibraryCall =>
            loaded.func(declaration) as unknown as LibraryCall;
          const prepared = Object.entries(preparing).map(([name, declaration]) => [name, func(declaration)]);
          const others = {
            pair: func("int socketpair(int domain, int type, int protocol, _Out_ int *ends)"),
            spawn: func(
              "int posix_spawn(_Out_ int *pid, const char *path, void *actions, void *attributes, const char **argv, const char **envp)",
            ),
            wait: func("int waitpid(int pid, _Out_ int *status, int options)"),
          };
          return {
            call: { ...others, ...Object.fromEntries(prepared) } as Library["call"],
            errno: () => koffi.errno(),
          };
        })
        .catch(() => undefined)
    : undefined;

// These values are those of the kernel's and glibc's headers, and equal on all architectures of Node.js.
const localStream = [1, 1 | 0o2000000] as const;
const readAndWrite = 2;
const withoutWaiting = 1;
/** POSIX_SPAWN_SETSID, _SETSIGDEF and _SETSIGMASK: a session of its own, and no signal ignored or held. */
const flags = 0x80 | 0x04 | 0x08;
/** More than glibc's types of these take: 80, 336 and 128 bytes. */
const [actionBytes, attributeBytes, signalBytes] = [256, 1024, 128];

/** A process whose end this module waits for. */
class SpawnedProcess extends EventEmitter implements StartedBrowser {
  constructor(
    readonly pid: number,
    readonly stdio: readonly (Socket | null)[],
  ) {
    super();
  }

  get stderr(): Socket | null {
    return this.stdio[2] ?? null;
  }

  ended(status: number): void {
    // What nobody reads would otherwise stay open, with its descriptor.
    for (const socket of this.stdio) socket?.resume();
    const signal = status & 0x7f;
    const name = Object.entries(constants.signals).find(([, number]) => number === signal)?.[0];
    this.emit("exit", signal === 0 ? (status >> 8) & 0xff : null, signal === 0 ? null : (name ?? "SIGKILL"));
  }
}

const running = new Set<SpawnedProcess>();

/** Looks at each, since signals of several that end at once come as one. */
function reap(): void {
  for (const child of running) {
    const status = [0];
    if (library?.call.wait(child.pid, status, withoutWaiting) !== child.pid) continue;
    running.delete(child);
    if (running.size === 0) process.off("SIGCHLD", reap);
    child.ended(status[0] ?? 0);
  }
}

interface ProcessOptions {
  readonly descriptors: Descriptors;
  readonly env: Readonly<Record<string, string>>;
}

/**
 * Starts a program in a session of its own, in the directory `/`. Node.js forks for that, which copies the
 * page tables of all the daemon's memory (DECISIONS.md 230); this shares it until the program begins.
 * Undefined where the C library cannot, or Node.js has to. Throws an error with a `code` where the program
 * could not be started.
 */
export function startProcess(
  [program = "", ...args]: readonly string[],
  { descriptors, env }: ProcessOptions,
): StartedBrowser | undefined {
  // A name without a directory would have to be looked for in PATH, as Node.js does.
  if (library === undefined || !program.startsWith("/")) return undefined;
  const { call } = library;
  const [actions, attributes] = [Buffer.alloc(actionBytes), Buffer.alloc(attributeBytes)];
  const pairs: { readonly at: number; readonly ours: number; readonly theirs: number }[] = [];
  call.initActions(actions);
  let isStarted = false;
  try {
    const piped = descriptors.flatMap((wanted, at) => (wanted === "pipe" ? [at] : []));
    for (const at of piped) pairs.push({ at, ...openPair(library) });
    const theirs = new Map(pairs.map((pair) => [pair.at, pair.theirs]));
    const sources = descriptors.map((wanted, at) => theirs.get(at) ?? wanted);
    // One among those that the program is given would be overwritten; Node.js itself has such low ones.
    if (sources.some((from) => typeof from === "number" && from < descriptors.length)) return undefined;
    for (const [at, from] of sources.entries()) place(library, actions, { at, from });
    call.enter(actions, "/");
    call.initAttributes(attributes);
    call.setFlags(attributes, flags);
    call.setDefaults(attributes, Buffer.alloc(signalBytes, 0xff));
    call.setMask(attributes, Buffer.alloc(signalBytes));
    const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    const pid = [0];
    const argv = [program, ...args, null];
    const failure = call.spawn(pid, program, actions, attributes, argv, [...variables, null]);
    if (failure !== 0) throw failureOf("posix_spawn", failure);
    isStarted = true;
    return watched(pid[0] ?? 0, descriptors, pairs);
  } finally {
    for (const { theirs } of pairs) closeSync(theirs);
    for (const { ours } of isStarted ? [] : pairs) closeSync(ours);
    call.endActions(actions);
  }
}

function place(
  { call }: Library,
  actions: Buffer,
  { at, from }: { readonly at: number; readonly from: Descriptors[number] },
): void {
  if (typeof from === "number") call.duplicate(actions, from, at);
  else call.openAs(actions, at, "/dev/null", readAndWrite, 0);
}

function watched(
  pid: number,
  descriptors: Descriptors,
  pairs: readonly { readonly at: number; readonly ours: number }[],
): SpawnedProcess {
  const sockets = new Map(
    pairs.map(({ at, ours }) => [at, new Socket({ fd: ours, readable: true, writable: true })]),
  );
  const child = new SpawnedProcess(
    pid,
    descriptors.map((_, at) => sockets.get(at) ?? null),
  );
  if (running.size === 0) process.on("SIGCHLD", reap);
  running.add(child);
  // One that has ended by now has sent its signal before anybody listened.
  setImmediate(reap);
  return child;
}

/** Both ends are closed in whatever is started besides. */
function openPair({ call, errno }: Library): { readonly ours: number; readonly theirs: number } {
  const ends = [-1, -1];
  if (call.pair(...localStream, 0, ends) !== 0) throw failureOf("socketpair", errno());
  const [ours = -1, theirs = -1] = ends;
  return { ours, theirs };
}

function failureOf(syscall: string, errno: number): NodeJS.ErrnoException {
  const code = getSystemErrorName(-errno);
  return Object.assign(new Error(`${syscall} ${code}`), { code, syscall });
}
