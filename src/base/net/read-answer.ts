import { readWhole } from "../read-whole.js";

/**
 * The text that another service has answered a `fetch` with. Throws where it is longer than it may be, and
 * then reads no further.
 */
export async function readAnswer(reply: Response, mostBytes: number): Promise<string> {
  const body = await readWhole(reply.body ?? new Blob([]).stream(), mostBytes);
  if (!body) throw new Error(`${reply.url} answered more than ${mostBytes} bytes`);
  return body.toString();
}
