import { PassThrough, pipeline, type Readable } from "node:stream";
import { TooLarge } from "./archives.js";
import type { StreamStep } from "./chunks.js";

/**
 * What comes out of the steps. It fails with whatever fails before it, and ends what is before it when it is
 * destroyed.
 */
export function pipeThrough(source: Readable, ...steps: readonly StreamStep[]): Readable {
  const out = new PassThrough();
  const all: StreamStep = (bytes) =>
    steps.reduce<AsyncGenerator<Buffer, void>>((before, step) => step(before), passed(bytes));
  pipeline(source, all, out, () => {});
  // The pipeline leaves a source alone for which a step is just waiting; ended, it wakes that step.
  out.once("close", () => source.destroy());
  // It may fail before its reader has come, who is told then.
  out.on("error", () => {});
  return out;
}

async function* passed(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
  yield* source;
}

/** Fails with `TooLarge` once there are more than `maxBytes`. */
export const limitBytes = (maxBytes: number): StreamStep =>
  async function* (source) {
    let seen = 0;
    for await (const chunk of source) {
      seen += chunk.length;
      if (seen > maxBytes) throw new TooLarge(maxBytes);
      yield chunk;
    }
  };
