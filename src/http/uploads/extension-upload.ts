import type { Readable } from "node:stream";
import { bounds } from "../../spec/bodies.js";
import { InvalidInput } from "../invalid-input.js";
import type { Part } from "./part-queue.js";

/**
 * What POST /extensions sends, in whichever order: clients append their parts concurrently
 * (docs/extensions-and-profiles.md#into-a-running-browser).
 */
interface ExtensionUpload {
  readonly file: Readable;
  /** Reads the parts after the file, so that has to have been read. Throws `InvalidInput`. */
  name(): Promise<string | undefined>;
}

type UploadParts = AsyncGenerator<Part, void>;

/** Reads as far as the file. Throws `InvalidInput` where none comes. */
export async function openUpload(parts: UploadParts): Promise<ExtensionUpload> {
  const names: string[] = [];
  for (let next = await parts.next(); !next.done; next = await parts.next()) {
    const part = next.value;
    if (part.kind === "file" && part.name === "file")
      return { file: part.bytes, name: () => readName(parts, names) };
    names.push(nameIn(part));
  }
  throw InvalidInput.of("file", "is required, as a file");
}

async function readName(parts: UploadParts, names: readonly string[]): Promise<string | undefined> {
  const all = [...names];
  for await (const part of parts) {
    if (part.kind === "file" && part.name === "file") throw InvalidInput.of("file", "must be sent once");
    all.push(nameIn(part));
  }
  if (all.length > 1) throw InvalidInput.of("name", "must be sent once");
  return all[0];
}

const pattern = new RegExp(bounds.namePattern);
/** Paths of their own under /extensions. */
const reserved = new Set(["from_chrome_store"]);

function nameIn(part: Part): string {
  if (part.name === "file") throw InvalidInput.of("file", "must be sent as a file");
  if (part.name !== "name")
    throw InvalidInput.of(part.name.slice(0, 100) || "a part without a name", "is not known here");
  if (part.kind === "file") throw InvalidInput.of("name", "must be a text, not a file");
  if (!pattern.test(part.value))
    throw InvalidInput.of("name", "must be 1 to 255 letters, digits, dots, underscores or hyphens");
  if (reserved.has(part.value)) throw InvalidInput.of("name", "is reserved");
  return part.value;
}
