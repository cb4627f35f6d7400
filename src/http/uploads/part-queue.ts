import type { Readable } from "node:stream";

/** `value`: the text of a field, decoded. */
interface FieldPart {
  readonly kind: "field";
  readonly name: string;
  readonly value: string;
}
/** `bytes` fails where the body is cut, late or malformed. */
export interface FilePart {
  readonly kind: "file";
  readonly name: string;
  readonly filename?: string;
  readonly bytes: Readable;
}
export type Part = FieldPart | FilePart;

/**
 * Parts on their way from the parser to their reader. A file that nobody reads holds up what follows it;
 * fields do not.
 */
export class PartQueue {
  readonly #parts: Part[] = [];
  readonly #files = new Set<Readable>();
  #outcome: "open" | "ended" | { readonly error: Error } = "open";
  #wake = (): void => {};

  push(part: Part): void {
    if (this.#outcome !== "open") return;
    this.#parts.push(part);
    if (part.kind === "file") this.#hold(part.bytes);
    this.#wake();
  }

  /** Has to be called when no more parts will come. */
  end(): void {
    if (this.#outcome === "open") this.#outcome = "ended";
    this.#wake();
  }

  /** The first failure counts; it reaches the file that is being read, and whoever asks for the next part. */
  fail(error: Error): void {
    if (this.#outcome !== "open") return;
    this.#outcome = { error };
    for (const file of this.#files) file.destroy(error);
    this.#wake();
  }

  /** Has to be called when nobody reads on. */
  close(): void {
    this.end();
    for (const file of this.#files) file.destroy();
  }

  /** Resolves with undefined after the last part. */
  async next(): Promise<Part | undefined> {
    while (this.#outcome === "open" && this.#parts.length === 0) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    if (typeof this.#outcome === "object") throw this.#outcome.error;
    return this.#parts.shift();
  }

  #hold(file: Readable): void {
    this.#files.add(file);
    file.once("close", () => this.#files.delete(file));
    // It may fail before anybody has begun to read it.
    file.on("error", () => {});
  }
}
