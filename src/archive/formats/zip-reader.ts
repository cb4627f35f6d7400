import { read } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { Readable } from "node:stream";
import yauzl from "yauzl";

const chunkBytes = 64 * 1024;

/**
 * Reads a file for yauzl from where the archive begins, within its bounds whatever the archive says: an
 * offset beyond what a number can hold would make the library's own reader throw where nobody can catch it.
 */
export class ZipReader extends yauzl.RandomAccessReader {
  constructor(
    private readonly file: FileHandle,
    private readonly sizeBytes: number,
    private readonly begins = 0,
  ) {
    super();
  }

  override read(
    ...[buffer, offset, length, position, callback]: Parameters<yauzl.RandomAccessReader["read"]>
  ): void {
    if (!this.#isWithin(position, position + length))
      return void setImmediate(callback, new Error("unexpected end of the file"));
    read(this.file.fd, buffer, offset, length, this.begins + position, (error, bytesRead) =>
      callback(error ?? (bytesRead === length ? null : new Error("unexpected end of the file"))),
    );
  }

  override _readStreamForRange(start: number, end: number): Readable {
    return Readable.from(this.#isWithin(start, end) ? this.#chunks(start, end) : [], { objectMode: false });
  }

  async *#chunks(start: number, end: number): AsyncGenerator<Buffer> {
    for (let at = start; at < end;) {
      const { buffer, bytesRead } = await this.file.read(Buffer.allocUnsafe(Math.min(chunkBytes, end - at)), {
        position: this.begins + at,
      });
      if (bytesRead === 0) return;
      yield buffer.subarray(0, bytesRead);
      at += bytesRead;
    }
  }

  #isWithin(start: number, end: number): boolean {
    return start >= 0 && start <= end && end <= this.sizeBytes;
  }
}
