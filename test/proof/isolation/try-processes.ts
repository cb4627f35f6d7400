import { randomBytes } from "node:crypto";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { basename, dirname } from "node:path";
import { directoriesOf } from "../../../src/browser/directories.js";
import type { ProcessAttempt } from "./corpus/attempt.js";
import type { Browser, TestMachine } from "./browser-source.js";
import { mostFiles } from "./corpus/outside.js";
import { intrude, type Place, type Told } from "./intrude.js";
import type { Proving, Tell } from "./outcome.js";

/** All at once by one program in the browser's place; without a wall by one as each who might be in it. */
export async function tryTogether(
  attempts: readonly ProcessAttempt[],
  { source: { machine }, browser, signal }: Proving & { readonly browser: Browser },
  tell: Tell,
): Promise<void> {
  if (attempts.length === 0 || signal.aborted) return;
  const nonce = randomBytes(6).toString("hex");
  const scriptsIn = ({ kind }: Place): string[] =>
    attempts.filter(({ leavesMarks }) => kind !== "root" || leavesMarks !== true).map(({ script }) => script);
  const signalsBefore = machine.victims.signals();
  const bound = attempts.find((attempt) => attempt.bound !== undefined)?.bound;
  const told: Told = {
    ...toldOf(machine, browser),
    nonce,
    ...(bound !== undefined && { bound, seconds: 60 }),
  };
  const runs = (await browser.places()).map((place) => intrude(place, scriptsIn(place), told));
  const settled = await Promise.allSettled(runs);
  const signals = machine.victims.signals() - signalsBefore;
  for (const attempt of attempts) {
    const texts = settled.flatMap((run) =>
      run.status === "fulfilled" ? (run.value.get(attempt.script) ?? []) : [],
    );
    const leaks = texts.flatMap((text) => leaksIn(text, attempt, { machine, browser }));
    if (attempt.script === "process_signal" && signals > 0) leaks.push("signalled another process");
    const fault = settled.find((run) => run.status === "rejected");
    const note = fault?.status === "rejected" ? String(fault.reason).slice(0, 300) : undefined;
    const verdict = leaks.length > 0 ? "leaked" : note === undefined ? "held" : "unsure";
    tell(attempt, {
      name: attempt.name,
      vector: "process",
      verdict,
      leaks: [...new Set(leaks)],
      ...(note !== undefined && { note }),
    });
  }
}

/**
 * The first process of a container: in a process namespace of its own a browser has one of that number too.
 */
const firstPid = 1;

function toldOf(
  { victims, targets, sockets, display, port, daemonPidInside, directory }: TestMachine,
  { root }: Browser,
): Told {
  return {
    file: targets.map(({ path }) => path),
    pid: [victims.pid, ...(daemonPidInside === firstPid ? [] : [daemonPidInside])],
    own: root,
    unix: [victims.socket, ...sockets],
    display: display.socket,
    authority: display.authority,
    own_display: displaysIn(root),
    most_files: mostFiles + 1,
    abstract: [victims.abstract],
    port: [victims.tcp, port],
    datagram: [victims.udp],
    key: victims.key,
    segment: [victims.segment],
    into: `${root}/Downloads`,
    directory,
  };
}

/** The numbers of the displays that a browser has of its own. */
function displaysIn(root: string): readonly string[] {
  const { display } = directoriesOf(dirname(root), basename(root));
  return existsSync(display) ? readdirSync(display).map((name) => name.replace(/^X/, "")) : [];
}

/** Whether the mark lies there outside too; it is removed then. */
function isMarked(path: string): boolean {
  const isThere = existsSync(path);
  if (isThere) rmSync(path);
  return isThere;
}

/**
 * A mark that was written inside is a leak where it lies outside too, and not in the browser's own
 * directories.
 */
function leaksIn(
  text: string,
  attempt: ProcessAttempt,
  { machine, browser }: { machine: TestMachine; browser: Browser },
): string[] {
  const judged = attempt.judge?.(text, machine);
  if (judged !== undefined) return [judged];
  const [, written] = /^wrote: (.*)$/s.exec(text) ?? [];
  if (written !== undefined)
    return isMarked(machine.seen(written)) && !written.startsWith(`${browser.root}/`)
      ? [`wrote ${written}`]
      : [];
  const [, did] = /^did: (.*)$/s.exec(text) ?? [];
  return did !== undefined
    ? [did]
    : [...machine.words].filter(([words]) => text.includes(words)).map(([, what]) => what);
}
