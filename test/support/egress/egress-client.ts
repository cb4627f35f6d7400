import { once } from "node:events";
import { type IncomingMessage, request, type RequestOptions } from "node:http";
import { connect, type Socket } from "node:net";

/** Connects to a port of loopback. */
export async function openSocket(port: number): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  socket.on("error", () => {});
  await once(socket, "connect");
  return socket;
}

/** Resolves when it is over, broken or not. */
export const closeOf = (socket: Socket): Promise<void> =>
  new Promise((resolve) => void socket.once("close", () => resolve()));

/** Everything until the end, or until `enough` says so; a broken connection ends it too. */
export function readText(socket: Socket, enough: (text: string) => boolean = () => false): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    const done = (): void => {
      socket.off("data", read);
      resolve(text);
    };
    const read = (data: Buffer): void => {
      text += data.toString("latin1");
      if (enough(text)) done();
    };
    socket.on("data", read).once("end", done).once("close", done);
  });
}

/** What is answered to exactly this, until the proxy closes the connection. */
export async function sendRaw(port: number, text: string | Buffer): Promise<string> {
  const socket = await openSocket(port);
  socket.write(text);
  const answer = await readText(socket);
  socket.destroy();
  return answer;
}

export interface Tunnel {
  /** The status of the answer. */
  readonly status: number;
  readonly answer: string;
  readonly socket: Socket;
}

/** A tunnel through the proxy on `port`. */
export async function openTunnel(port: number, target: string): Promise<Tunnel> {
  const socket = await openSocket(port);
  socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`);
  const answer = await readText(
    socket,
    (text) => text.startsWith("HTTP/1.1 200") && text.includes("\r\n\r\n"),
  );
  return { status: Number(answer.split(" ")[1]), answer, socket };
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly rawHeaders: string[];
  readonly trailers: IncomingMessage["trailers"];
  readonly text: string;
}

export interface Asked extends RequestOptions {
  readonly body?: string;
}

/** A plain request through the proxy on `port`. */
export async function ask(port: number, url: string, { body, ...options }: Asked = {}): Promise<Answer> {
  const asking = request({ host: "127.0.0.1", port, path: url, agent: false, ...options });
  // What breaks after the answer began is told by its body.
  asking.on("error", () => {}).end(body);
  const [answer] = (await once(asking, "response")) as [IncomingMessage];
  let text = "";
  for await (const piece of answer as AsyncIterable<Buffer>) text += piece.toString();
  return {
    status: answer.statusCode ?? 0,
    headers: answer.headers,
    rawHeaders: answer.rawHeaders,
    trailers: answer.trailers,
    text,
  };
}

/** The body of an answer that was read as text. */
export const bodyOf = (answer: string): string => answer.slice(answer.indexOf("\r\n\r\n") + 4);
