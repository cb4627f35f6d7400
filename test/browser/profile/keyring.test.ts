import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { directoriesOf, makeDirectories, newWorkspaceName } from "../../../src/browser/directories.js";
import type { BrowserHost } from "../../../src/browser/host.js";
import { etcDirectory } from "../../../src/browser/isolation/ladder.js";
import { startWalled } from "../../../src/browser/isolation/syscall-filter.js";
import { makeEtc } from "../../../src/browser/isolation/system-files.js";
import { openTestHost } from "../../support/browser/chromium-host.js";
import { newScratchDirectory } from "../../support/killed-runs.js";

/** It needs nothing beside itself, and calls the kernel by number. */
const perl = "/usr/bin/perl";
/** add_key(2), keyctl(2) and lseek(2), on x86-64 and arm64. */
const [addKey, keyctl, lseek] = process.arch === "arm64" ? [217, 219, 62] : [248, 250, 8];
const session = -3;
/**
 * Joins a session of its own, as a login does; puts a key into it; and runs what it is given, one after the
 * other. The filter of system calls is on descriptor 5, read anew by each.
 */
const login = `
  syscall(${keyctl}, 1, 0) > 0 or die "no session: $!";
  my ($type, $name, $held) = ("user", "of-the-daemon", "held");
  syscall(${addKey}, $type, $name, $held, 4, ${session}) > 0 or die "no key: $!";
  for my $command (split /\\x02/, $ARGV[0]) {
    syscall(${lseek}, 5, 0, 0);
    system(split /\\x01/, $command) == 0 or print "failed $?\\n";
  }
`;
/** Reads the keys of the daemon and of the neighbour, and leaves one. */
const intruder = `
  my $name = $ARGV[0];
  for my $other ("of-the-daemon", "of-one", "of-another") {
    my ($type, $copy, $text) = ("user", $other, " " x 32);
    my $key = syscall(${keyctl}, 10, ${session}, $type, $copy, 0);
    next if $key <= 0;
    my $length = syscall(${keyctl}, 11, $key, $text, 32);
    print "$name read $other\\n" if $length > 0;
  }
  my ($type, $mine, $held) = ("user", $name, "held");
  print "$name kept a key\\n" if syscall(${addKey}, $type, $mine, $held, 4, ${session}) > 0;
  print "$name ran\\n";
`;

let host: BrowserHost;
beforeAll(async () => {
  const scratchDirectory = newScratchDirectory();
  host = await openTestHost({ scratchDirectory, readablePaths: [perl] });
});
afterAll(() => host.close());

/** The command line that starts a browser, with a hostile program in its place. */
async function asBrowser(name: string, uid: number | null): Promise<string> {
  const directories = directoriesOf(host.scratchDirectory, newWorkspaceName());
  await makeDirectories(directories, uid);
  await mkdir(join(directories.root, "policy"), { recursive: true });
  const own = uid ?? process.getuid?.() ?? 0;
  await makeEtc(etcDirectory(host.scratchDirectory, own), own);
  const inside = { directories, uid, hasPolicies: true, hasDisplay: false };
  return (host.walls?.browser(inside, [perl, "-e", intruder, name]) ?? []).join("\x01");
}

test("a browser reads no key of the session that the daemon was started in, and leaves none for others", async () => {
  const uids = [host.uids?.take(), host.uids?.take()];
  const commands = await Promise.all(
    ["of-one", "of-another"].map((name, at) => asBrowser(name, uids[at] ?? null)),
  );
  const child = await startWalled(host.walls ?? {}, [perl, "-e", login, commands.join("\x02")], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [output] = await Promise.all([text(child.stdout as Readable), once(child, "close")]);
  expect(output.trim().split("\n")).toEqual(["of-one ran", "of-another ran"]);
});
