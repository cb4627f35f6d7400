import { type ChildProcess, spawn } from "node:child_process";
import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { systemClock } from "../../../src/base/clock.js";
import { within } from "../../../src/base/deadline.js";
import { findExecutable } from "../../../src/browser/executable.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import { bound } from "../../support/bound.js";
import { endGroup } from "../../support/living.js";
import type { ZipPart } from "../../support/archive/zip-bytes.js";
import type { Kind } from "../arguments.js";
import type { Browser, TestMachine, BrowserSource, KeepingBrowser, SourceBeside } from "./browser-source.js";
import type { Place } from "./intrude.js";
import { asUser, isRoot } from "./programs.js";
import { archiveAnything, partsOf, unpackAnything } from "./unpack-anything.js";

/**
 * Chromium as one would start it oneself, beside the machine's daemon and as its user: no root of its own, no
 * gate, no policy.
 */
export async function openPlain(machine: TestMachine, kind: Kind): Promise<BrowserSource> {
  const executable = await findExecutable(kind.engine);
  if (executable === undefined) throw new Error(`${kind.engine} is not installed`);
  const open = (): Promise<Browser> => launch(executable, machine, kind);
  const openKeeping = async (): Promise<KeepingBrowser> => {
    const browser = await open();
    return {
      ...browser,
      save: () => archiveAnything(join(browser.root, "profile"), machine.uid).finally(() => browser.close()),
    };
  };
  const beside: SourceBeside = { open, log: () => "", close: async () => {} };
  return { kind, machine, isPlain: true, open, openKeeping, openBeside: async () => beside };
}

const switches = [
  "--disable-gpu",
  "--no-first-run",
  "--disable-quic",
  "--password-store=basic",
  "--remote-debugging-port=0",
  "--enable-unsafe-extension-debugging",
];

/** Makes the directories that a browser of the daemon has; all of them belong to its user. */
async function makeRoot({ directory, uid }: TestMachine): Promise<string> {
  const root = await mkdtemp(join(directory, "plain-"));
  // What Chromium starts by its name notes that it was started.
  const bin = join(root, "bin");
  await mkdir(bin);
  await writeFile(join(bin, "xdg-open"), `#!/bin/sh\necho "$@" >> ${root}/tmp/opened\n`, { mode: 0o755 });
  const inner = ["profile", "Downloads", "uploads", "extensions", "tmp"].map((name) => join(root, name));
  await Promise.all(inner.map((path) => mkdir(path)));
  for (const path of [root, ...inner]) {
    await chmod(path, 0o755);
    if (isRoot) await chown(path, uid, uid);
  }
  return root;
}

async function launch(
  executable: string,
  machine: TestMachine,
  { engine, headless }: Kind,
): Promise<Browser> {
  const root = await makeRoot(machine);
  const mode = engine === "chromium" && headless ? ["--headless=new"] : [];
  const words = [
    ...asUser(machine.uid),
    ...bound(
      executable,
      ...switches,
      ...mode,
      ...(machine.uid === 0 ? ["--no-sandbox"] : []),
      `--user-data-dir=${root}/profile`,
      "about:blank",
    ),
  ];
  const [program = "", ...args] = words;
  const child = spawn(program, args, {
    stdio: ["ignore", "ignore", "pipe"],
    detached: true,
    env: { PATH: `${root}/bin:${process.env["PATH"] ?? ""}`, HOME: root, TMPDIR: join(root, "tmp") },
  });
  const close = async (): Promise<void> => {
    await endGroup(child);
    await rm(root, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
  };
  const listening = new Promise<string>((resolve, reject) => {
    child.once("error", reject).once("exit", (code) => reject(new Error(`Chromium ended with ${code}`)));
    createInterface({ input: child.stderr }).on("line", (line) => {
      const url = /DevTools listening on (ws:\S+)/.exec(line)?.[1];
      if (url !== undefined) resolve(url);
    });
  });
  try {
    const cdpUrl = await within(systemClock, { what: "starting Chromium", limitMs: 120_000 }, listening);
    const places: Place[] = [
      { kind: "user", uid: machine.uid },
      ...(isRoot ? [{ kind: "root" } as const] : []),
    ];
    return {
      cdpUrl,
      root,
      close,
      isPlain: true,
      places: async () => places,
      mainPid: async () => pidOf(child),
      extend: (files) => extend(cdpUrl, root, partsOf(files)),
      unpack: (entries) => extend(cdpUrl, root, entries),
    };
  } catch (error) {
    await close();
    throw error;
  }
}

function pidOf({ pid, exitCode, signalCode }: ChildProcess): number {
  if (pid === undefined || exitCode !== null || signalCode !== null) throw new Error("the browser has ended");
  return pid;
}

/** Loads it over CDP, as it lies there. */
async function extend(cdpUrl: string, root: string, entries: readonly ZipPart[]): Promise<boolean> {
  const path = await mkdtemp(join(root, "extensions/e-"));
  await chmod(path, 0o755);
  await unpackAnything(entries, path);
  const cdp = await connectRaw(cdpUrl);
  try {
    return (
      (await cdp.send("Extensions.loadUnpacked", { path, enableInIncognito: true })).result?.["id"] !==
      undefined
    );
  } finally {
    cdp.socket.close();
  }
}
