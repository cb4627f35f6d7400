import { promisify } from "node:util";
import zlib from "node:zlib";
import { atFirstUse } from "../../base/at-first-use.js";
import { mapInOrder, inChunks, type StreamStep } from "../chunks.js";
import { contentBytes, NotZstd, ZstdFrames } from "./zstd-frames.js";

/** Whole frames of zstd (RFC 8878); both run on a thread of the pool, outside the event loop. */
interface ZstdCodec {
  compress(bytes: Buffer): Promise<Buffer>;
  decompress(frame: Buffer): Promise<Buffer>;
}

type BuiltIn = (bytes: Buffer, done: (error: Error | null, result: Buffer) => void) => void;

/** Node.js has zstd from 22.15 on; its types here are those of 20. */
const builtIn = (name: string): BuiltIn | undefined => {
  const found: unknown = Reflect.get(zlib, name);
  return typeof found === "function"
    ? (bytes, done) => void Reflect.apply(found, zlib, [bytes, done])
    : undefined;
};

/** A machine for which the package has no binary can do everything else. */
const zstdCodec = atFirstUse((require): ZstdCodec => {
  const [compress, decompress] = [builtIn("zstdCompress"), builtIn("zstdDecompress")];
  if (compress && decompress) return { compress: promisify(compress), decompress: promisify(decompress) };
  return require("@mongodb-js/zstd") as typeof import("@mongodb-js/zstd");
});

/** Frames in the making at once: one is compressed while the next is read. */
const width = 2;

/**
 * Writes one zstd frame after the other, each of a mebibyte; `zstd -d` and `tar --zstd` read them as one
 * archive.
 */
export const compress: StreamStep = async function* (source) {
  const codec = zstdCodec();
  yield* mapInOrder(inChunks(source, contentBytes), (piece) => codec.compress(piece), width);
};

/** The inverse of `compress`; throws where the bytes end early or are something else. */
export const decompress: StreamStep = async function* (source) {
  const codec = zstdCodec();
  const open = async (frame: Buffer): Promise<Buffer> => {
    const bytes = await codec.decompress(frame);
    if (bytes.length > contentBytes) throw new NotZstd("a frame holds too much");
    return bytes;
  };
  yield* mapInOrder(framesOf(source), open, width);
};

async function* framesOf(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
  const frames = new ZstdFrames();
  for await (const chunk of source) yield* frames.push(chunk);
  frames.end();
}
