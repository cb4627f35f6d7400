import { mapInOrder, inChunks, type StreamStep } from "../chunks.js";
import { zstdCodec } from "./zstd-codec.js";
import { contentBytes, NotZstd, ZstdFrames } from "./zstd-frames.js";

/** Frames in the making at once: one is compressed while the next is read. */
const width = 2;

/**
 * One zstd frame after the other, each of a mebibyte, which `zstd -d` and `tar --zstd` read as one archive.
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
