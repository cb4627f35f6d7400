import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { bound } from "../bound.js";

const running: ChildProcess[] = [];

/** Ends all that were started. */
export async function endPerl(): Promise<void> {
  for (const child of running.splice(0)) {
    const ended = child.exitCode === null ? once(child, "exit") : undefined;
    child.kill("SIGKILL");
    await ended;
  }
}

/**
 * Starts a program of Perl, and gives its pid when it has done that much. `$block` is a
 * mebibyte, and `$number` that of memfd_create(2), which is another on arm64.
 */
export async function startPerl(way: string, before: readonly string[] = []): Promise<number> {
  const script = `$| = 1; my $number = -e "/lib/ld-linux-aarch64.so.1" ? 279 : 319; my $block = "x" x 1048576; my $name = "held\\0";
    ${way} print "done\\n"; sleep 60;`;
  const [program = "", ...args] = [...before, ...bound("perl", "-e", script)];
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"] });
  running.push(child);
  await Promise.race([
    once(child.stdout, "data"),
    once(child, "exit").then(() => Promise.reject(new Error("the program ended"))),
  ]);
  return child.pid ?? 0;
}

/** Writes so many mebibytes. */
export const fill = (file: string, mebibytes: number): string =>
  `syswrite(${file}, $block) or die "$!" for 1 .. ${mebibytes};`;

export const memfd = (file: string): string =>
  `open(my ${file}, "+<&=", syscall($number, $name, 0)) or die "$!";`;

/** Forks so many processes that have a file open as often; they end with their parent. */
export const manyDescriptors = (file: string, processes: number, each: number): string => `
  my $parent = $$; my @held; pipe(my $ready, my $tell) or die;
  for (1 .. ${processes}) {
    next if fork() != 0;
    syscall(-e "/lib/ld-linux-aarch64.so.1" ? 167 : 157, 1, 9, 0, 0, 0); exit 0 if getppid() != $parent;
    for (1 .. ${each}) { open($held[@held], "<&", ${file}) or die "$!" }
    syswrite($tell, "x"); sleep 60; exit 0;
  }
  for (1 .. ${processes}) { sysread($ready, my $one, 1) == 1 or die }`;

export const sharedFile = `${memfd("$file")} ${fill("$file", 1)}`;

/** Maps so many pages of one shared file, each in a line of its own of `maps`. */
export const mapMany = (count: number): string =>
  `${sharedFile} my @protections = (1, 3); for (1 .. ${count}) { syscall(-e "/lib/ld-linux-aarch64.so.1" ? 222 : 9, 0, 4096, $protections[$_ % 2], 1, fileno($file), 0) > 0 or die "$!" }`;
