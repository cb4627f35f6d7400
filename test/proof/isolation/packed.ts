import { execFile } from "node:child_process";
import { access, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { findExecutable } from "../../../src/browser/executable.js";

const run = promisify(execFile);
const limitMs = 120_000;

/**
 * The files of an extension that policy installs: what it says of itself, an update.xml, and these files
 * packed by Chromium.
 */
export async function packedFiles(
  inner: Readonly<Record<string, string>>,
  manifest: string,
): Promise<Record<string, string | Buffer>> {
  const chromium = await findExecutable("chromium");
  if (chromium === undefined) throw new Error("Chromium is not installed");
  const directory = await mkdtemp(join(tmpdir(), "remuda-prove-packed-"));
  const source = join(directory, "source");
  try {
    await mkdir(source);
    for (const [name, text] of Object.entries(inner)) await writeFile(join(source, name), text);
    const switches = [
      "--headless=new",
      "--no-sandbox",
      "--disable-gpu",
      "--no-message-box",
      `--user-data-dir=${join(directory, "profile")}`,
      `--pack-extension=${source}`,
    ];
    // It may end with a failure and have packed all the same.
    const env = { ...process.env, TMPDIR: directory };
    await run(chromium, switches, { timeout: limitMs, env }).catch(() =>
      access(join(directory, "source.crx")),
    );
    return {
      ...inner,
      "manifest.json": manifest,
      "packed.crx": await readFile(join(directory, "source.crx")),
      "update.xml":
        "<?xml version='1.0'?><gupdate><app appid='x'><updatecheck codebase='http://127.0.0.1:10001/x.crx' version='1' /></app></gupdate>",
    };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
