import { isUtf8 } from "node:buffer";
import { type FileHandle, open } from "node:fs/promises";
import { promisify } from "node:util";
import { crc32, inflateRaw } from "node:zlib";
import yauzl from "yauzl";
import { shownFaults } from "./shown-faults.js";
import { entryFaults, findCollisions, isDirectory, shownName } from "./zip-names.js";
import { ZipReader } from "./zip-reader.js";

export interface ZipLimits {
  readonly maxFiles: number;
  readonly maxUnpackedBytes: number;
}

/** What is wrong with an archive that somebody sent, told for people. */
export class BadArchive extends Error {
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    const shown = shownFaults(faults);
    super(shown.join("; "));
    this.name = "BadArchive";
    this.faults = shown;
  }
}

/** An entry whose name leads to nowhere else. */
export interface ZipEntry {
  /** Parts joined by /; that of a directory ends with one. */
  readonly name: string;
  readonly isDirectory: boolean;
  readonly sizeBytes: number;
}

export interface Zip {
  readonly entries: readonly ZipEntry[];
  /** Throws `BadArchive` where the bytes are not as many as was said, or not those that were packed. */
  read(entry: ZipEntry): AsyncIterable<Buffer>;
}

/** Text packs to a hundredth at best; an archive of zeros to a thousandth. */
const maxRatio = 100;
/** A small archive may unpack to so much whatever its ratio. */
const freeBytes = 10 * 2 ** 20;

interface Beginning {
  /** The offset in the file; 0 unless given. */
  readonly begins?: number;
}

/** Throws `BadArchive` unless all that the archive says of its entries is harmless and within the limits. */
export async function withZip<Result>(
  path: string,
  limits: ZipLimits & Beginning,
  work: (zip: Zip) => Promise<Result>,
): Promise<Result> {
  const file = await open(path, "r");
  try {
    return await work(await openZip(file, limits));
  } finally {
    await file.close();
  }
}

async function openZip(file: FileHandle, limits: ZipLimits & Beginning): Promise<Zip> {
  const { begins = 0 } = limits;
  const size = (await file.stat()).size - begins;
  const opened = await blamed(
    yauzl.fromRandomAccessReaderPromise(new ZipReader(file, size, begins), size, {
      autoClose: false,
      decodeStrings: false,
    }),
  );
  // What comes beside the answer to a call has nobody to tell: the file is closed by whoever opened it.
  opened.on("error", () => {});
  const entries = await blamed(listEntries(opened, limits));
  checkEntries(entries, { ...limits, archiveBytes: size });
  return {
    entries,
    read(entry) {
      if (!(entry instanceof OwnEntry)) throw new TypeError("an entry of another archive");
      return readEntry({ zip: opened, file, begins }, entry);
    },
  };
}

interface OpenedZip {
  readonly zip: yauzl.ZipFile;
  readonly file: FileHandle;
  readonly begins: number;
}

class OwnEntry implements ZipEntry {
  readonly name: string;
  readonly isDirectory: boolean;
  readonly sizeBytes: number;
  readonly mode: number;
  constructor(readonly raw: yauzl.Entry) {
    this.name = nameOf(raw);
    this.sizeBytes = raw.uncompressedSize;
    this.mode = raw.externalFileAttributes >>> 16;
    this.isDirectory = isDirectory(this);
  }
}

/** Many packers write UTF-8 and do not say so. */
const nameOf = ({ fileNameRaw, generalPurposeBitFlag, extraFields }: yauzl.Entry): string =>
  isUtf8(fileNameRaw)
    ? fileNameRaw.toString()
    : yauzl.getFileNameLowLevel(generalPurposeBitFlag, fileNameRaw, extraFields, true);

async function listEntries(zip: yauzl.ZipFile, { maxFiles }: ZipLimits): Promise<readonly OwnEntry[]> {
  const entries: OwnEntry[] = [];
  for await (const entry of zip.eachEntry()) {
    if (entries.length === maxFiles) throw new BadArchive([`has more than ${maxFiles} files`]);
    entries.push(new OwnEntry(entry));
  }
  return entries;
}

function checkEntries(entries: readonly OwnEntry[], limits: ZipLimits & { archiveBytes: number }): void {
  const faults = [
    ...sizeFaults(
      entries.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
      limits,
    ),
    ...entries.flatMap((entry) =>
      [...entryFaults(entry), ...packingFaults(entry.raw)].map((what) => `${shownName(entry.name)} ${what}`),
    ),
  ];
  const collisions = faults.length > 0 ? [] : findCollisions(entries);
  faults.push(
    ...collisions.map(
      (name) => `${shownName(name)} has the name of another, or needs a directory where a file is`,
    ),
  );
  if (faults.length > 0) throw new BadArchive(faults);
}

function sizeFaults(
  unpackedBytes: number,
  { maxUnpackedBytes, archiveBytes }: ZipLimits & { archiveBytes: number },
): readonly string[] {
  if (unpackedBytes > maxUnpackedBytes)
    return [`unpacks to ${unpackedBytes} bytes, at most ${maxUnpackedBytes} are allowed`];
  const isBomb = unpackedBytes > Math.max(freeBytes, archiveBytes * maxRatio);
  return isBomb ? [`unpacks to more than ${maxRatio} times its size`] : [];
}

function packingFaults(raw: yauzl.Entry): readonly string[] {
  if (raw.isEncrypted()) return ["is encrypted"];
  return raw.canDecodeFileData()
    ? []
    : [`is packed by method ${raw.compressionMethod}; only deflate and plain files can be read`];
}

/** Smaller files are read at once: a stream for each takes milliseconds. */
const streamedBytes = 256 * 1024;

async function* readEntry({ zip, file, begins }: OpenedZip, { raw, name }: OwnEntry): AsyncGenerator<Buffer> {
  let sum = 0;
  const local = await blamed(zip.readLocalFileHeaderPromise(raw));
  // Another reader would unpack it under that name.
  if (!local.fileName.equals(raw.fileNameRaw))
    throw new BadArchive([`${shownName(name)} is called otherwise in the archive's body`]);
  const isSmall = raw.compressedSize <= streamedBytes && raw.uncompressedSize <= streamedBytes;
  // The library ends a stream at the first byte beyond what was declared.
  const chunks = isSmall
    ? [await blamed(readWhole(file, raw, begins + local.fileDataStart))]
    : await blamed(zip.openReadStreamPromise(raw));
  try {
    for await (const chunk of chunks) {
      sum = crc32(chunk, sum);
      yield chunk;
    }
  } catch (error) {
    throw blame(error);
  }
  if (sum !== raw.crc32) throw new BadArchive([`${shownName(name)} is damaged: its checksum is another`]);
}

const inflate = promisify<Buffer, { maxOutputLength: number }, Buffer>(inflateRaw);

async function readWhole(
  file: FileHandle,
  { compressedSize, uncompressedSize, compressionMethod }: yauzl.Entry,
  start: number,
): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(compressedSize), { position: start });
  if (bytesRead < compressedSize) throw new Error("unexpected end of the file");
  const bytes =
    compressionMethod === 0
      ? buffer
      : await inflate(buffer, { maxOutputLength: uncompressedSize + 1 }).catch(tooLong);
  if (bytes.length !== uncompressedSize)
    throw new Error(`a file unpacks to other than the ${uncompressedSize} bytes that are said`);
  return bytes;
}

function tooLong(error: unknown): Buffer {
  if (error instanceof RangeError) throw new Error("a file unpacks to more than is said", { cause: error });
  throw error;
}

const blamed = <Result>(work: Promise<Result>): Promise<Result> =>
  work.catch((error: unknown) => {
    throw blame(error);
  });

/** What the disk does is not the archive's fault. */
function blame(error: unknown): unknown {
  if (error instanceof BadArchive || !(error instanceof Error) || "syscall" in error) return error;
  return new BadArchive([`is not a sound zip archive: ${error.message}`]);
}
