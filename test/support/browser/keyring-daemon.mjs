// A daemon cut down to its walls, with a program in a browser's place that looks for kernel keys: once behind
// the walls that browsers get, once behind the same ones without their filter of system calls. Says what each
// did, then "all". Arguments: directory of compiled sources, scratch directory, which has to be empty.
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";

const [compiled, scratchDirectory] = process.argv.slice(2);
const load = (path) => import(`${compiled}/${path}`);
const { systemClock } = await load("src/base/clock.js");
const { directoriesOf, makeDirectories, newWorkspaceName } = await load("src/browser/directories.js");
const { openHost } = await load("src/browser/host.js");
const { etcDirectory } = await load("src/browser/isolation/ladder.js");
const { startWalled } = await load("src/browser/isolation/syscall-filter.js");
const { makeEtc } = await load("src/browser/isolation/system-files.js");

const perl = "/usr/bin/perl";
/** keyctl(2), on x86-64 and arm64. The session's keyring is -3, search 10, read 11. */
const keyctl = process.arch === "arm64" ? 219 : 250;
const intruder = `
  my ($type, $name, $text) = ("user", "of-the-daemon", " " x 32);
  my $key = syscall(${keyctl}, 10, -3, $type, $name, 0);
  print "$ARGV[0] read ", substr($text, 0, 4), "\\n" if $key > 0 && syscall(${keyctl}, 11, $key, $text, 32) > 0;
  print "$ARGV[0] ran\\n";
`;

const log = { debug() {}, info() {}, warn() {}, error() {}, child: () => log };
const host = await openHost(
  { scratchDirectory, launchLimitMs: 60_000, readablePaths: [perl] },
  { clock: systemClock, log },
);
const directories = directoriesOf(host.scratchDirectory, newWorkspaceName());
await makeDirectories(directories, null);
await mkdir(join(directories.root, "policy"), { recursive: true });
await makeEtc(etcDirectory(host.scratchDirectory, process.getuid()), process.getuid());

async function intrude(name, isFiltered) {
  const inside = { directories, uid: null, hasPolicies: true, hasDisplay: false };
  const command = host.walls.browser(inside, [perl, "-e", intruder, name]);
  const at = command.indexOf("--seccomp");
  if (at < 0) throw new Error("these walls have no filter");
  const without = [...command.slice(0, at), ...command.slice(at + 2)];
  const child = await startWalled(isFiltered ? host.walls : {}, isFiltered ? command : without, {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [said] = await Promise.all([text(child.stdout), once(child, "close")]);
  process.stdout.write(said);
}

await intrude("unfiltered", false);
await intrude("walled", true);
await host.close();
process.stdout.write("all\n");
