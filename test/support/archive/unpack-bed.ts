import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { checkExtension } from "../../../src/archive/formats/check-extension.js";
import { unpackExtension } from "../../../src/archive/formats/unzip.js";
import type { ZipPart } from "./zip-bytes.js";

export const limits = {
  maxFiles: 50,
  maxUnpackedBytes: 30 * 2 ** 20,
  blockedPermissions: ["proxy", "debugger"],
};
export const script: ZipPart = { name: "js/a.js", content: "document.title = 'A'" };
export const withScript = { content_scripts: [{ matches: ["<all_urls>"], js: ["js/a.js"] }] };

/** A directory in which a test file checks and unpacks archives. */
export class UnpackBed {
  readonly work = mkdtempSync(join(tmpdir(), "remuda-zip-"));
  #count = 0;

  /** A path at which nothing is yet. */
  newPath = (): string => join(this.work, `${(this.#count += 1)}`);

  place = (bytes: Buffer): string => {
    const path = `${this.newPath()}.zip`;
    writeFileSync(path, bytes);
    return path;
  };

  faultsOf = async (bytes: Buffer): Promise<readonly string[]> => {
    const checked = await checkExtension(this.place(bytes), limits);
    return checked.kind === "faulty" ? checked.faults : [];
  };

  /** Unpacks it into a directory of its own; what was written, by path. */
  unpack = async (bytes: Buffer): Promise<{ into: string; files: Record<string, string> }> => {
    const into = this.newPath();
    await unpackExtension(this.place(bytes), into, limits);
    const paths = readdirSync(into, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));
    return {
      into,
      files: Object.fromEntries(
        paths.map((path) => [path.slice(into.length + 1), readFileSync(path, "utf8")]),
      ),
    };
  };
}

/** One for all tests of a file. */
export function sharedUnpackBed(): UnpackBed {
  const bed = new UnpackBed();
  afterAll(() => rmSync(bed.work, { recursive: true, force: true }));
  return bed;
}
