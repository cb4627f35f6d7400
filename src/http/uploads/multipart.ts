import { PassThrough } from "node:stream";
import { Busboy, type BusboyFileStream, type BusboyInstance } from "@fastify/busboy";
import type { Clock } from "../../base/clock.js";
import { RemudaError } from "../../base/errors.js";
import { BodyPump, type UploadExchange, type BodyTimeLimits } from "./body-pump.js";
import { InvalidInput } from "../invalid-input.js";
import { type Part, PartQueue } from "./part-queue.js";

export interface MultipartLimits extends BodyTimeLimits {
  readonly maxParts: number;
  /** The limit of a field's value. */
  readonly maxFieldBytes: number;
  readonly maxFileBytes: number;
}

/**
 * The limit of one part's headers: room for a name and a filename of a thousand characters each, and for more
 * headers than any client sends.
 */
const headerSize = 8192;
const headerPairs = 20;

/**
 * Gives the parts of a `multipart/form-data` body one after the other, while it arrives. A file is to be read
 * before the next part is asked for: what is left of it then is skipped, and whoever stops asking gets no
 * more. Throws `InvalidInput` or `RemudaError` (`bad_request`, `unsupported_media_type`), in the loop or
 * through a file's stream, where the body is malformed, beyond a limit, late, or cut off. The rest of a body
 * that nobody wants is read and dropped within the same limits of time; the reply need not wait.
 */
export async function* readParts(
  exchange: UploadExchange,
  limits: MultipartLimits,
  clock: Clock,
): AsyncGenerator<Part, void> {
  const parser = makeParser(exchange.request.headers["content-type"] ?? "", limits);
  const queue = new PartQueue();
  listen(parser, queue, limits);
  const pump = new BodyPump(exchange, limits, { clock, onFault: (error) => queue.fail(error) });
  void pump.run(parser);
  try {
    for (let part = await queue.next(); part; part = await queue.next()) {
      yield part;
      skip(part);
    }
  } finally {
    queue.close();
    pump.discard();
  }
}

function skip(part: Part): void {
  if (part.kind === "file") part.bytes.destroy();
}

function makeParser(
  contentType: string,
  { maxParts, maxFieldBytes, maxFileBytes }: MultipartLimits,
): BusboyInstance {
  if (!isMultipart(contentType))
    throw new RemudaError("unsupported_media_type", {
      message: "The body must be sent as multipart/form-data",
    });
  try {
    return new Busboy({
      headers: { "content-type": contentType },
      limits: { parts: maxParts, fieldSize: maxFieldBytes, fileSize: maxFileBytes, headerSize, headerPairs },
      isPartAFile: (_, type, filename) =>
        type === "application/octet-stream" || (filename !== undefined && type !== "application/json"),
    });
  } catch {
    throw InvalidInput.of("Content-Type", "has no boundary that can be used");
  }
}

const isMultipart = (contentType: string): boolean => /^multipart\/form-data\s*(?:;|$)/i.test(contentType);

function listen(
  parser: BusboyInstance,
  queue: PartQueue,
  { maxParts, maxFieldBytes, maxFileBytes }: MultipartLimits,
): void {
  parser.on("field", (...[name, value, , isCut]) => {
    if (isCut) queue.fail(InvalidInput.of(shown(name), `must have at most ${maxFieldBytes} bytes`));
    else queue.push({ kind: "field", name: nameOf(name), value });
  });
  parser.on("file", (name, file, filename) => {
    const bytes = readableOf(file);
    file.once("limit", () =>
      bytes.destroy(InvalidInput.of(shown(name), `must have at most ${maxFileBytes} bytes`)),
    );
    queue.push({ kind: "file", name: nameOf(name), bytes, ...(filename && { filename }) });
  });
  parser.on("partsLimit", () => queue.fail(InvalidInput.of("body", `must have at most ${maxParts} parts`)));
  parser.on("error", () =>
    queue.fail(
      InvalidInput.of("body", "is not well-formed multipart/form-data: its closing boundary is missing"),
    ),
  );
  parser.on("finish", () => queue.end());
}

/** The parser is told no name where a part has none, whatever its types say. */
const nameOf = (name: string | undefined): string => name ?? "";

const longestShown = 100;
/** A part's name as a fault may repeat it. */
const shown = (name: string | undefined): string =>
  nameOf(name).slice(0, longestShown) || "a part without a name";

/** The parser waits for every file to be read: one that its reader has left goes to nobody. */
function readableOf(file: BusboyFileStream): PassThrough {
  const bytes = new PassThrough();
  file.on("error", (error: Error) => bytes.destroy(error));
  bytes.once("close", () => {
    file.unpipe(bytes);
    file.resume();
  });
  return file.pipe(bytes);
}
