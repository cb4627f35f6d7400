import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { extract, pack } from "tar-stream";

/** The names of a tar's entries, in its order. */
export async function namesIn(tar: Buffer): Promise<string[]> {
  const entries = extract();
  entries.end(tar);
  const names: string[] = [];
  for await (const entry of entries) {
    names.push(entry.header.name);
    entry.resume();
  }
  return names;
}

/** An entry as a test writes it, of 4 bytes where it says nothing of them. */
export interface TarPart {
  readonly name: string;
  readonly type?: "symlink" | "link" | "fifo" | "directory";
  readonly size?: number;
  readonly linkname?: string;
  readonly body?: string;
}

export async function tarOf(...entries: readonly TarPart[]): Promise<Buffer> {
  const tar = pack();
  for (const { body, ...header } of entries) {
    if (header.type) tar.entry(header).end(undefined);
    else tar.entry(header, body ?? "held");
  }
  tar.finalize();
  return await buffer(Readable.from(tar));
}
