import { promisify } from "node:util";
import zlib from "node:zlib";
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

async function load(): Promise<ZstdCodec> {
  const [compress, decompress] = [builtIn("zstdCompress"), builtIn("zstdDecompress")];
  if (compress && decompress) return { compress: promisify(compress), decompress: promisify(decompress) };
  const codec = await import("@mongodb-js/zstd");
  return { compress: (bytes) => codec.compress(bytes), decompress: (frame) => codec.decompress(frame) };
}

let loaded: Promise<ZstdCodec> | undefined;
/**
 * The package is loaded at first use, because a machine for which it has no binary can do everything else.
 */
const zstdCodec = (): Promise<ZstdCodec> => (loaded ??= load());

/** Frames in the making at once: one is compressed while the next is read. */
const width = 2;

/**
 * Writes one zstd frame after the other, each of a mebibyte; `zstd -d` and `tar --zstd` read them as one
 * archive.
 */
export const compress: StreamStep = async function* (source) {
  const codec = await zstdCodec();
  yield* mapInOrder(inChunks(source, contentBytes), (piece) => codec.compress(piece), width);
};

/** The inverse of `compress`; throws where the bytes end early or are something else. */
export const decompress: StreamStep = async function* (source) {
  const codec = await zstdCodec();
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
