import { promisify } from "node:util";
import zlib from "node:zlib";

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
/** At first use: a machine for which the package has no binary can do everything else. */
export const zstdCodec = (): Promise<ZstdCodec> => (loaded ??= load());
