import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";

/** Somebody who asks and then reads nothing of the answer. */
interface StalledReader {
  readonly socket: Socket;
  /**
   * How much of the answer waits for them in the daemon's system; undefined once the connection is no more.
   */
  unsent(): Promise<number | undefined>;
}

/** Sends a request as it is written, and never reads. */
export async function stallReader(
  url: string,
  line: string,
  headers: readonly string[],
): Promise<StalledReader> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname)
    .on("error", () => {})
    .pause();
  await once(socket, "connect");
  const ends = [socket.remotePort, socket.localPort].map(hexOf);
  socket.write([`${line} HTTP/1.1`, `Host: ${hostname}:${port}`, ...headers, "", ""].join("\r\n"));
  return { socket, unsent: () => queueBetween(ends) };
}

const hexOf = (port = 0): string => port.toString(16).toUpperCase().padStart(4, "0");

/** As Linux tells it (proc_net_tcp(5)): addresses, state, and the bytes that were not acknowledged. */
async function queueBetween([own, peer]: readonly string[]): Promise<number | undefined> {
  const table = await readFile("/proc/net/tcp", "latin1");
  const [, queue] =
    new RegExp(`[0-9A-F]{8}:${own} [0-9A-F]{8}:${peer} [0-9A-F]{2} ([0-9A-F]{8}):`).exec(table) ?? [];
  return queue === undefined ? undefined : parseInt(queue, 16);
}
