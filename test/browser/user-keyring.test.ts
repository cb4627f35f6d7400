import { chownSync } from "node:fs";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { expect, test } from "vitest";
import { daemonScript } from "../support/browser/chromium-daemon.js";
import { newScratchDirectory } from "../support/killed-runs.js";

/** Nobody else's; who is not root is an ordinary user already. */
const uid = process.getuid?.() === 0 ? 64_323 : undefined;
/** add_key(2) and keyctl(2), on x86-64 and arm64. */
const [addKey, keyctl] = process.arch === "arm64" ? [217, 219] : [248, 250];
/** Joins a session of its own, as a login does, puts a key into it, and becomes what it is given. */
const login = `
  syscall(${keyctl}, 1, 0) > 0 or die "no session: $!";
  my ($type, $name, $held) = ("user", "of-the-daemon", "held");
  syscall(${addKey}, $type, $name, $held, 4, -3) > 0 or die "no key: $!";
  exec { $ARGV[0] } @ARGV;
`;
const asUser =
  uid === undefined ? [] : ["setpriv", `--reuid=${uid}`, `--regid=${uid}`, "--clear-groups", "--"];

const script = daemonScript("browser/keyring-daemon.mjs");

test("a browser of an ordinary user's daemon reads no key of its session, which it does without the filter of system calls", async () => {
  const scratchDirectory = newScratchDirectory();
  if (uid !== undefined) chownSync(scratchDirectory, uid, uid);
  const { child, said } = await script.start(scratchDirectory, "all", [
    ...asUser,
    "/usr/bin/perl",
    "-e",
    login,
  ]);
  if (child.exitCode === null) await once(child, "exit");
  expect(said).toEqual(["unfiltered read held", "unfiltered ran", "walled ran", "all"]);
  await rm(scratchDirectory, { recursive: true, force: true });
});
