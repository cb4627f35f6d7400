import type { S3Client } from "@aws-sdk/client-s3";
import type { STSClient } from "@aws-sdk/client-sts";
import { pipeline, Readable, Transform } from "node:stream";

/** What is answered to a put or for a role is a page at most, and is read whole before it is looked at. */
const maxAnswerBytes = 64 * 1024;

/**
 * Has a client of Amazon's take no longer answers: it parses them in one piece, for seconds and in hundreds of
 * megabytes where somebody answers with as much.
 */
export function takeShortAnswers(client: S3Client | STSClient): void {
  // Their stacks differ by the types of what is asked, which is nothing to this.
  const { middlewareStack } = client as S3Client;
  middlewareStack.add(
    (next) => async (asked) => {
      const answered = await next(asked);
      const response = answered.response as { body?: unknown };
      if (response.body instanceof Readable) response.body = shortened(response.body);
      return answered;
    },
    // The last before the answer is parsed.
    { step: "deserialize", priority: "low", name: "takeShortAnswers" },
  );
}

function shortened(body: Readable): Readable {
  let bytes = 0;
  const short = new Transform({
    transform(part: Buffer, _encoding, done) {
      bytes += part.length;
      if (bytes > maxAnswerBytes) done(new Error(`an answer of more than ${maxAnswerBytes} bytes`));
      else done(null, part);
    },
  });
  return pipeline(body, short, () => {});
}
