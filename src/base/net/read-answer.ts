import { readWhole } from "../read-whole.js";

interface AnswerLimits {
  readonly mostBytes: number;
  /** That of the `fetch`. */
  readonly signal: AbortSignal;
}

/**
 * The text that another service has answered a `fetch` with. Throws where it is longer than it may be, and
 * when the signal aborts: a `fetch` with `redirect: "error"` itself forgets its signal once the head is there
 * and memory was collected, and would wait for the body for ever (measured with Node.js 20.20).
 */
export async function readAnswer(
  { body, url }: Response,
  { mostBytes, signal }: AnswerLimits,
): Promise<string> {
  if (!body) return "";
  const reader = body.getReader() as ReadableStreamDefaultReader<Uint8Array>;
  // What is cancelled is at its end.
  const cancel = (): void => void reader.cancel().catch(() => {});
  signal.addEventListener("abort", cancel);
  try {
    const whole = await readWhole(piecesOf(reader, signal), mostBytes);
    if (!whole) throw new Error(`${url} answered more than ${mostBytes} bytes`);
    return whole.toString();
  } finally {
    signal.removeEventListener("abort", cancel);
    cancel();
  }
}

async function* piecesOf(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  for (;;) {
    signal.throwIfAborted();
    const { done, value } = await reader.read();
    signal.throwIfAborted();
    if (done) return;
    yield value;
  }
}
