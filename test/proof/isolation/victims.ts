import { type ChildProcess, execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmod, chown, mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { systemClock } from "../../../src/base/clock.js";
import { within } from "../../../src/base/deadline.js";
import { asUser } from "./programs.js";

/** A file that no browser may read. */
export interface Target {
  readonly what: string;
  readonly path: string;
  /** The secret words in its content. */
  readonly words: string;
}

/** What may be stolen on a machine, beside what its daemon has. */
export interface Victims {
  readonly targets: readonly Target[];
  /** What each words stand for, those of no file too. */
  readonly words: ReadonlyMap<string, string>;
  readonly pid: number;
  readonly socket: string;
  readonly abstract: string;
  readonly tcp: number;
  readonly udp: number;
  readonly segment: number;
  readonly key: string;
  /** Directories that everybody may write into. */
  readonly open: readonly string[];
  /** How often the process has been signalled. */
  signals(): number;
  close(): Promise<void>;
}

const run = promisify(execFile);
const bystander = join(import.meta.dirname, "bystander.mjs");

/**
 * Puts a segment of shared memory and a key where the uid's other processes find them. add_key(2) and
 * keyctl(2) have the numbers 248 and 250 on x86-64, 217 and 219 on arm64; -4 is the uid's own keyring.
 */
const plant = `my ($words, $segment, $key) = @ARGV;
my $id = shmget($segment, 64, 01666); shmwrite($id, "$words-segment", 0, 64) if defined $id;
my $arm = -e "/lib/ld-linux-aarch64.so.1"; my $payload = "$words-key"; my ($type, $name) = ("user\\0", "$key\\0");
syscall($arm ? 217 : 248, $type, $name, $payload, length $payload, -4);`;
const unplant = `my $id = shmget($ARGV[0], 0, 0); shmctl($id, 0, 0) if defined $id;`;

/** Places outside any browser's own where others may keep files, and that this machine has. */
const places = ["/tmp", "/var/tmp", "/dev/shm", "/run", "/opt", homedir(), "/home"];

async function plantFiles(name: string, words: string): Promise<{ targets: Target[]; open: string[] }> {
  const targets: Target[] = [];
  const open: string[] = [];
  for (const place of new Set(places)) {
    const directory = join(place, name);
    const path = join(directory, "held.txt");
    const isMade = await mkdir(directory)
      .then(() => writeFile(path, `${words}-${place}`))
      .then(
        () => true,
        () => false,
      );
    if (!isMade) continue;
    // Readable and writable for every uid: only the wall keeps them.
    await chmod(directory, 0o777);
    await chmod(path, 0o666);
    open.push(directory);
    targets.push({ what: `a file in ${place}`, path, words: `${words}-${place}` });
  }
  return { targets, open };
}

/** Files of the machine itself, as far as they can be read here. */
async function systemFiles(): Promise<Target[]> {
  const lastLine = (text: string): string => text.trimEnd().split("\n").at(-1) ?? "";
  const found = await Promise.all(
    ["/etc/passwd", "/etc/shadow", "/etc/machine-id", "/etc/fstab"].map(async (path) => {
      const words = lastLine(await readFile(path, "utf8").catch(() => ""));
      // A browser's own /etc/passwd may well have a line for root or nobody.
      return words.length > 20 && !/^(?:root|nobody):/.test(words) ? [{ what: path, path, words }] : [];
    }),
  );
  return found.flat();
}

/** `uid`: whose they are, that of the daemon. `directory`: one that is there for them. */
export async function plantVictims(uid: number, directory: string): Promise<Victims> {
  const name = `remuda-prove-${randomBytes(4).toString("hex")}`;
  const words = `words-${randomBytes(8).toString("hex")}`;
  const [socket, abstract] = [join(directory, "bystander.sock"), `${name}-abstract`];
  const segment = randomBytes(4).readInt32BE() & 0x7fffffff;
  const { targets, open } = await plantFiles(name, words);
  const [planter = "perl", ...given] = [...asUser(uid), "perl", "-e", plant, words, String(segment), name];
  const [program = "", ...args] = [
    ...asUser(uid),
    process.execPath,
    bystander,
    socket,
    abstract,
    `${words}-argv`,
  ];
  const child = spawn(program, args, {
    stdio: ["ignore", "pipe", "inherit"],
    env: { PATH: process.env["PATH"] ?? "", PROVE_WORDS: `${words}-environment` },
  });
  const close = async (): Promise<void> => {
    await end(child);
    await run("perl", ["-e", unplant, String(segment)]);
    await Promise.all(open.map((each) => rm(each, { recursive: true, force: true })));
  };
  try {
    await run(planter, given);
    const heard = await listenTo(child);
    const [passwd, ...others] = await systemFiles();
    const all = [...(passwd ? [passwd] : []), ...others, ...targets];
    await chmod(socket, 0o777);
    return {
      targets: all,
      pid: child.pid ?? 0,
      socket,
      abstract,
      segment,
      key: name,
      open,
      close,
      ...heard.ports,
      signals: heard.signals,
      words: new Map([
        ...all.map(({ what, words: text }) => [text, what] as const),
        ...["unix", "abstract", "tcp", "udp", "argv", "environment", "segment", "key"].map(
          (kind) => [`${words}-${kind}`, kinds[kind] ?? kind] as const,
        ),
      ]),
    };
  } catch (error) {
    await close();
    throw error;
  }
}

const kinds: Readonly<Record<string, string>> = {
  unix: "a unix socket of another",
  abstract: "an abstract socket of another",
  tcp: "a port of the host's loopback",
  udp: "a datagram socket of another",
  argv: "a command line of another",
  environment: "an environment of another",
  segment: "shared memory of another",
  key: "a key of another",
};

async function listenTo(
  child: ChildProcess,
): Promise<{ ports: { tcp: number; udp: number }; signals: () => number }> {
  let signals = 0;
  const ready = new Promise<string>((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`the bystander ended with ${code}`)));
    if (child.stdout)
      createInterface({ input: child.stdout }).on("line", (line) =>
        line === "signalled" ? (signals += 1) : resolve(line),
      );
  });
  const ports = JSON.parse(
    await within(systemClock, { what: "starting the bystander", limitMs: 60_000 }, ready),
  ) as { tcp: number; udp: number };
  return { ports, signals: () => signals };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
}

/** Files of one daemon, whose paths are known once it runs. */
export async function filesOf(paths: Readonly<Record<string, string>>): Promise<Target[]> {
  const found = await Promise.all(
    Object.entries(paths).map(async ([what, path]) => {
      const words = (await readFile(path, "latin1").catch(() => "")).trim().slice(0, 200);
      return words === "" ? [] : [{ what, path, words }];
    }),
  );
  return found.flat();
}

/** A file of these words that is the uid's who owns the directory, and that everybody may read. */
export async function plantIn(directory: string, words: string): Promise<string> {
  const path = join(directory, "held.txt");
  const { uid, gid } = await stat(directory);
  await writeFile(path, words, { mode: 0o644 });
  if (process.getuid?.() === 0) await chown(path, uid, gid);
  return path;
}
