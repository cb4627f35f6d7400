import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** How a fake Chromium behaves. Without any of them it launches at once and answers everything. */
export interface Knobs {
  /** Before it reads its pipe, or before it fails. */
  readonly delayMs?: number;
  /** Written to its standard error first. */
  readonly lines?: readonly string[];
  /** Ends with this code instead of starting. */
  readonly failWithCode?: number;
  /** Ends by itself so long after it has started. */
  readonly exitAfterMs?: number;
  /** Ends by itself when it hears this CDP method. */
  readonly exitOn?: string;
  readonly exitCode?: number;
  /** CDP methods that are never answered. */
  readonly ignore?: readonly string[];
  /** What it writes as its state when it is asked to close; from its start on that is "half". */
  readonly state?: string;
  /** Answers nothing any more once its launch is complete, so that probes fail. */
  readonly muteAfterLaunch?: boolean;
}

export interface FakeChromium {
  /** The value for `HostSettings.executable`. */
  readonly executable: string;
  /** Changes how browsers behave that are launched after this. */
  turn(knobs: Knobs): Promise<void>;
  remove(): Promise<void>;
}

const script = fileURLToPath(new URL("fake-chromium.mjs", import.meta.url));

/**
 * What a manifest's `fake` makes of an extension: Chromium refuses it; it is enabled only where it is loaded
 * at a launch, so that a running browser has to restart; or, as that, and the launch fails.
 */
export type FakeExtension = "refused" | "late" | "deadly";

/** An executable that launches like Chromium in about 50 ms, with no browser behind it. */
export async function makeFakeChromium(knobs: Knobs = {}): Promise<FakeChromium> {
  const directory = await mkdtemp(join(tmpdir(), "remuda-fake-chromium-"));
  const executable = join(directory, "chromium");
  // Browsers have uids of their own, which have to reach it.
  await chmod(directory, 0o755);
  const turn = async (next: Knobs): Promise<void> => {
    const quoted = JSON.stringify(next).replaceAll("'", String.raw`'\''`);
    await writeFile(
      executable,
      `#!/bin/sh\nREMUDA_FAKE='${quoted}' exec '${process.execPath}' '${script}' "$@"\n`,
    );
    await chmod(executable, 0o755);
  };
  await turn(knobs);
  return { executable, turn, remove: () => rm(directory, { recursive: true }) };
}

/** What a fake is made of besides its executable: a browser's private root has to show it. */
export const readableByFakes: readonly string[] = [
  "/usr/bin",
  "/bin",
  dirname(process.execPath),
  dirname(script),
];

/** The part of a configuration file that puts a fake in the place of every engine. */
export const standIn = ({ executable }: FakeChromium): { browser: object } => ({
  browser: { executable, headless_shell: executable, readable_paths: readableByFakes },
});
