import type { Pipe } from "../../browser/cdp/pipe.js";
import type { BridgeClient } from "./connection.js";

/**
 * Chromium ends the browser when a message on its pipe exceeds 100 MiB (kReceiveBufferSizeForDevTools in
 * content/browser/devtools/devtools_pipe_handler.cc); the margin is for the id, the session, the NUL and the
 * read that completes it.
 */
const maxBodyBytes = 100 * 1024 * 1024 - 129 * 1024;
const backlogBytes = 32 * 1024 * 1024;

/** Writes clients' commands to the pipe. A client that writes faster than Chromium reads has to wait. */
export class CommandWriter {
  readonly #waiting = new Set<BridgeClient>();

  constructor(private readonly pipe: Pick<Pipe, "send" | "sendParts" | "backlogBytes" | "onDrained">) {}

  /** Has clients go on whenever there is room again, until the returned function is called. */
  start(): () => void {
    return this.pipe.onDrained(() => {
      for (const bridgeClient of this.#waiting) bridgeClient.proceed();
      this.#waiting.clear();
    });
  }

  write(
    body: string | Uint8Array,
    { id, session, owner }: { readonly id: number; readonly session: string; readonly owner: BridgeClient },
  ): void {
    if (typeof body === "string") this.pipe.send(`{"id":${id},${body},"sessionId":"${session}"}`);
    else this.pipe.sendParts([`{"id":${id},`, body, `,"sessionId":"${session}"}`]);
    if (this.pipe.backlogBytes() <= backlogBytes || this.#waiting.has(owner)) return;
    this.#waiting.add(owner);
    owner.wait();
  }

  forget(owner: BridgeClient): void {
    this.#waiting.delete(owner);
  }
}

/** A UTF-16 unit is at most three bytes of UTF-8. */
export const whyTooLong = (body: string | Uint8Array): string | undefined =>
  body.length * 3 > maxBodyBytes && Buffer.byteLength(body) > maxBodyBytes
    ? "The message is longer than Chromium accepts"
    : undefined;
