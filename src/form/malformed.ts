import type { Duplex } from "node:stream";
import { repliesOn } from "../base/net/open-replies.js";
import { invalidAnswer } from "./answers.js";

/**
 * Answers what the parser could not read, or did not get in time, and closes the connection. Where an answer
 * is still to come there, this would be taken for it: a submission would look refused that is being saved.
 */
export function refuseMalformed(
  { code }: NodeJS.ErrnoException,
  socket: Duplex,
  headers: Readonly<Record<string, string>>,
): void {
  const isAmidAnswers = repliesOn(socket).some(({ req, headersSent }) => req.complete || headersSent);
  if (code === "ECONNRESET" || !socket.writable || isAmidAnswers) return void socket.destroy();
  const body = JSON.stringify(invalidAnswer.body);
  const lines = Object.entries({
    ...headers,
    "content-type": "application/json; charset=utf-8",
    "content-length": String(Buffer.byteLength(body)),
    connection: "close",
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  // Whoever goes on sending must not keep the connection.
  socket.once("finish", () => socket.destroy());
  socket.end(`HTTP/1.1 400 Bad Request\r\n${lines.join("")}\r\n${body}`);
}
