import { chmod, mkdir, open, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Seal } from "../../base/crypto/seal.js";
import type { Log } from "../../base/log.js";

interface JournalFilesParts {
  readonly directory: string;
  /** What a file holds is read by nobody who has not the deployment's key, and a torn one does not open. */
  readonly seal: Seal;
  readonly log: Log;
  readonly mostBytes: number;
}

const ending = ".sealed";
const nameOf = (file: string): string => file.slice(0, -ending.length);

/** Small files of one folder, each written whole or not at all, all together within a bound. */
export class JournalFiles {
  readonly #bytes: Map<string, number>;

  private constructor(
    private readonly parts: JournalFilesParts,
    bytes: ReadonlyMap<string, number>,
  ) {
    this.#bytes = new Map(bytes);
  }

  static async open(parts: JournalFilesParts): Promise<JournalFiles> {
    const { directory } = parts;
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await chmod(directory, 0o700);
    const files = await readdir(directory);
    const [whole, begun] = [files.filter((file) => file.endsWith(ending)), files.filter(isBegun)];
    await Promise.all(begun.map((file) => rm(join(directory, file), { force: true })));
    const sizes = await Promise.all(whole.map((file) => stat(join(directory, file))));
    return new JournalFiles(
      parts,
      new Map(whole.map((file, place) => [nameOf(file), sizes[place]?.size ?? 0])),
    );
  }

  get names(): readonly string[] {
    return [...this.#bytes.keys()];
  }

  /** Whoever writes the same name has to wait for the end. Throws where there is no room for it. */
  async write(name: string, value: unknown): Promise<void> {
    const { seal, mostBytes } = this.parts;
    const text = seal.close(JSON.stringify(value), ownerOf(name));
    const others = [...this.#bytes].reduce((sum, [other, bytes]) => (other === name ? sum : sum + bytes), 0);
    if (others + text.length > mostBytes)
      throw new Error(`the journal would have more than ${mostBytes} bytes`);
    const path = this.#pathOf(name);
    const file = await open(`${path}${begunEnding}`, "w", 0o600);
    try {
      await file.writeFile(text);
      // Or a machine that loses its power may keep the new name without what it is for.
      await file.datasync();
    } finally {
      await file.close();
    }
    await rename(`${path}${begunEnding}`, path);
    this.#bytes.set(name, text.length);
  }

  /** Undefined where there is none, and where it does not open: that is logged. */
  async read(name: string): Promise<unknown> {
    if (!this.#bytes.has(name)) return undefined;
    const { seal, log } = this.parts;
    const opened = seal.open(await readFile(this.#pathOf(name), "utf8"), ownerOf(name));
    if (opened.kind === "opened") return JSON.parse(opened.text.reveal());
    log.warn({ entry: name, why: opened.kind }, "journal entry could not be read");
    return undefined;
  }

  async remove(name: string): Promise<void> {
    await rm(this.#pathOf(name), { force: true });
    this.#bytes.delete(name);
  }

  #pathOf = (name: string): string => join(this.parts.directory, `${name}${ending}`);
}

const begunEnding = ".begun";
const isBegun = (file: string): boolean => file.endsWith(begunEnding);
const ownerOf = (name: string): string => `journal ${name}`;
