import { type Detail, done, type Done, refusal, type Refusal } from "../../base/errors.js";
import { type StagedArchive, type Staging, TooLarge } from "../../archive/archives.js";
import { bounds } from "../../spec/bodies.js";
import type { SentExtension } from "../../pool/operations.js";
import {
  type ReceivedPart,
  faultOf,
  findPartPosition,
  pairParts,
  parseNames,
  type PartPosition,
} from "./extension-parts.js";
import { InvalidInput } from "../invalid-input.js";
import type { FilePart, Part } from "./part-queue.js";

/** The extensions in load order; there is at least one, and no two have one name. */
interface SentExtensions {
  readonly items: readonly SentExtension[];
  /** Removes the files. */
  discard(): Promise<void>;
}

interface Options {
  readonly staging: Staging;
  /** The limit of one archive. */
  readonly maxBytes: number;
}

/**
 * Takes the parts of an upload as they come, archives to files of our own, and says what they are together.
 * Where it refuses, or throws what the parts did, nothing is kept.
 */
export async function receiveExtensions(
  parts: AsyncIterable<Part>,
  options: Options,
): Promise<Done<SentExtensions> | Refusal> {
  const receiving = new Receiving(options);
  try {
    for await (const part of parts) await receiving.take(part);
  } catch (error) {
    await receiving.discard();
    throw error;
  }
  const { sent, faults } = receiving.result();
  if (faults.length === 0) return done(sent);
  await receiving.discard();
  return refusal("bad_request", { details: faults });
}

class Receiving {
  readonly #arrived: ReceivedPart<StagedArchive | undefined>[] = [];
  readonly #staged: StagedArchive[] = [];
  readonly #faults: Detail[] = [];

  constructor(private readonly options: Options) {}

  async take(part: Part): Promise<void> {
    const place = findPartPosition(part.name);
    if (!place) return void this.#faults.push(faultOf(shown(part.name), "is not a known part"));
    if (part.kind === "file") return await this.#takeFile(part, place);
    const names = place.role === "list" ? parseNames(part.value) : [part.value];
    if (place.role === "file") this.#faults.push(faultOf(part.name, "must be a file"));
    else if (names) this.#arrived.push({ place, names });
    else this.#faults.push(faultOf(part.name, "must be a JSON list of objects, each with a name"));
  }

  result(): { sent: SentExtensions; faults: readonly Detail[] } {
    const { pairs, faults } = pairParts(this.#arrived);
    const items = pairs.flatMap(({ name, file }) =>
      file ? [{ name, path: file.path, digest: file.digest }] : [],
    );
    return { sent: { items, discard: () => this.discard() }, faults: [...this.#faults, ...faults] };
  }

  async discard(): Promise<void> {
    await Promise.all(this.#staged.map((staged) => staged.discard()));
  }

  /**
   * Once a body is refused in any case, no more of it is written; it is read on to tell what else is wrong
   * with it.
   */
  async #takeFile(part: FilePart, place: PartPosition): Promise<void> {
    if (place.role !== "file") return void this.#faults.push(faultOf(part.name, "must be text, not a file"));
    const isOfUse = this.#faults.length === 0 && this.#staged.length < bounds.extensions;
    this.#arrived.push({ place, file: isOfUse ? await this.#stage(part) : undefined });
  }

  async #stage({ name, bytes }: FilePart): Promise<StagedArchive | undefined> {
    const { staging, maxBytes } = this.options;
    try {
      const staged = await staging.take(bytes, { maxBytes });
      this.#staged.push(staged);
      return staged;
    } catch (error) {
      // Once the whole body is broken, the next part fails in the same way.
      if (error instanceof InvalidInput) this.#faults.push(...error.details);
      else if (error instanceof TooLarge)
        this.#faults.push(faultOf(name, `must have at most ${maxBytes} bytes`));
      else throw error;
      return undefined;
    }
  }
}

const longestShown = 100;
const shown = (name: string): string => name.slice(0, longestShown) || "a part without a name";
