import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { type MultipartLimits, readParts } from "../../../src/http/uploads/multipart.js";
import type { Part } from "../../../src/http/uploads/part-queue.js";
import { DrivenClock } from "../driven-clock.js";
import { multipartType } from "./multipart-body.js";

const limits: MultipartLimits = {
  maxParts: 5,
  maxFieldBytes: 100,
  maxFileBytes: 1_000_000,
  stallMs: 20_000,
  limitMs: 300_000,
};

/** What was read of a body, and how that ended. */
interface Seen {
  readonly parts: string[];
  outcome?: string;
}
type Reader = (parts: AsyncGenerator<Part>, seen: Seen) => Promise<void>;

/** A part as one text: `name=value`, or `name:filename:bytes`. */
export async function textOf(part: Part): Promise<string> {
  if (part.kind === "field") return `${part.name}=${part.value}`;
  const chunks: Buffer[] = [];
  for await (const chunk of part.bytes) chunks.push(chunk as Buffer);
  return `${part.name}:${part.filename ?? "-"}:${Buffer.concat(chunks).toString("latin1")}`;
}
const readAll: Reader = async (parts, seen) => {
  for await (const part of parts) seen.parts.push(await textOf(part));
};

/** A server that reads every body as multipart, on a driven clock. */
export class MultipartServer {
  clock = new DrivenClock();
  /** How bodies are read: whole, unless a test says otherwise. */
  read: Reader = readAll;
  seen: Seen = { parts: [] };
  /** How many requests are over. */
  ended = 0;
  readonly #sockets: Socket[] = [];
  readonly #server = createServer((request, response) => void this.#serve(request, response));

  async start(): Promise<void> {
    await once(this.#server.listen(0, "127.0.0.1"), "listening");
  }

  close(): void {
    this.#server.close();
  }

  /** Resolves once no connection is left and everything is as at the start. */
  async reset(): Promise<void> {
    for (const socket of this.#sockets.splice(0)) socket.destroy();
    await expect
      .poll(() => new Promise((resolve) => this.#server.getConnections((_, count) => resolve(count))))
      .toBe(0);
    [this.clock, this.seen, this.ended, this.read] = [new DrivenClock(), { parts: [] }, 0, readAll];
  }

  /** A request of which `text` has been sent, and that promises `length` bytes. */
  open(text: Buffer, length = text.length, type = multipartType): { socket: Socket; got: () => string } {
    const socket = connect((this.#server.address() as AddressInfo).port, "127.0.0.1");
    this.#sockets.push(socket);
    let got = "";
    socket.on("data", (chunk) => (got += chunk.toString())).on("error", () => {});
    socket.write(
      `POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: ${type}\r\ncontent-length: ${length}\r\n\r\n`,
    );
    socket.write(text);
    return { socket, got: () => got };
  }

  async outcomeOf(text: Buffer, length?: number, type?: string): Promise<string | undefined> {
    this.open(text, length, type);
    await expect.poll(() => this.seen.outcome).toBeDefined();
    return this.seen.outcome;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    request.once("close", () => (this.ended += 1));
    // A body that is read to its end late is not taken for that of the request after it.
    const { seen } = this;
    try {
      await this.read(readParts({ request, response }, limits, this.clock), seen);
      seen.outcome = "whole";
    } catch (error) {
      seen.outcome = error instanceof Error ? error.message : "odd";
    }
    response.end(seen.outcome);
  }
}

/** One for all tests of a file. */
export function sharedMultipartServer(): MultipartServer {
  const server = new MultipartServer();
  beforeAll(() => server.start());
  afterEach(() => server.reset());
  afterAll(() => server.close());
  return server;
}
