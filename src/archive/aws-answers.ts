import type { S3Client } from "@aws-sdk/client-s3";
import type { STSClient } from "@aws-sdk/client-sts";
import { pipeline, Readable, Transform } from "node:stream";
import type { Millis } from "../base/clock.js";

/** The SDK repeats a request that was refused for the moment. */
const attempts = 3;

/** A request is given up when it is not answered within the limit, or when nothing moves for so long. */
export const limitedRequests = (limitMs: Millis) => ({
  maxAttempts: attempts,
  requestHandler: {
    connectionTimeout: limitMs,
    requestTimeout: limitMs,
    throwOnRequestTimeout: true,
    socketTimeout: limitMs,
  },
});

/**
 * An error, or what is answered to a put or for a role, is a page at most and is read whole before it is
 * looked at.
 */
const usualBytes = 64 * 1024;

/**
 * Has a client of Amazon's take no longer answers: it parses them in one piece, for seconds and in hundreds
 * of megabytes where somebody answers with as much. `mostBytes`: of what is answered to a command that is
 * done.
 */
export function takeShortAnswers(
  client: S3Client | STSClient,
  mostBytes: (command: string) => number = () => usualBytes,
): void {
  // Their stacks differ by the types of what is asked, which is nothing to this.
  const { middlewareStack } = client as S3Client;
  middlewareStack.add(
    (next, { commandName = "" }) =>
      async (asked) => {
        const answered = await next(asked);
        const response = answered.response as { body?: unknown; readonly statusCode: number };
        const most = response.statusCode < 300 ? mostBytes(commandName) : usualBytes;
        if (response.body instanceof Readable && most < Infinity)
          response.body = shortened(response.body, most);
        return answered;
      },
    // The last before the answer is parsed.
    { step: "deserialize", priority: "low", name: "takeShortAnswers" },
  );
}

function shortened(body: Readable, mostBytes: number): Readable {
  let bytes = 0;
  const short = new Transform({
    transform(part: Buffer, _encoding, done) {
      bytes += part.length;
      if (bytes > mostBytes) done(new Error(`an answer of more than ${mostBytes} bytes`));
      else done(null, part);
    },
  });
  return pipeline(body, short, () => {});
}
