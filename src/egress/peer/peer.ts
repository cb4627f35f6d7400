import { readFile } from "node:fs/promises";
import { connect, createServer, type AddressInfo, isIPv4, type Socket } from "node:net";
import { once } from "node:events";
import { type ConnectionEnd, lookUpSocket } from "./socket-lookup.js";

/**
 * Writes an address and port as the kernel's table has them: the address is one number in the byte order of
 * this machine, which is little-endian.
 */
function tableName(address: string, port: number): string {
  const bytes = address.split(".").map((part) => Number(part).toString(16).padStart(2, "0"));
  return `${bytes.toReversed().join("")}:${port.toString(16).padStart(4, "0")}`.toUpperCase();
}

/** The number of a socket that its process has closed: it is nobody's then, and may say uid 0. */
const noInode = "0";

let reading: Promise<unknown> = Promise.resolve();
let waiting: Promise<string> | undefined;

/**
 * Reads the kernel's table of all connections (proc_net(5)), which takes the longer the more there are: one
 * read at a time, for all who have asked before it begins.
 */
function readTable(): Promise<string> {
  if (!waiting) {
    waiting = reading.then(() => {
      waiting = undefined;
      return readFile("/proc/net/tcp", "latin1");
    });
    reading = waiting.catch(() => {});
  }
  return waiting;
}

async function findUidInTable({
  address,
  port,
  peerAddress,
  peerPort,
}: ConnectionEnd): Promise<number | undefined> {
  const name = ` ${tableName(address, port)} ${tableName(peerAddress, peerPort)} `;
  const table = await readTable();
  const at = table.indexOf(name);
  if (at < 0) return undefined;
  const [, , , , uid, , inode] = table
    .slice(at + name.length, table.indexOf("\n", at))
    .trim()
    .split(/\s+/);
  return inode === noInode || uid === undefined ? undefined : Number(uid);
}

/** The other end of a connection over IPv4 whose one end is ours. */
function peerOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): ConnectionEnd | undefined {
  if (!remoteAddress || !localAddress || !isIPv4(remoteAddress) || !isIPv4(localAddress)) return undefined;
  return {
    address: remoteAddress,
    port: remotePort ?? 0,
    peerAddress: localAddress,
    peerPort: localPort ?? 0,
  };
}

/**
 * The uid that opened the other end of a connection over IPv4 loopback; undefined where no process of this
 * network namespace holds it any more. Asks the kernel for the one socket, or else reads the table of all.
 */
export async function findPeerUid(socket: Socket): Promise<number | undefined> {
  const peer = peerOf(socket);
  if (!peer) return undefined;
  const found = lookUpSocket(peer);
  if (found.kind !== "unavailable") return found.kind === "held" ? found.uid : undefined;
  const uid = await findUidInTable(peer);
  // The port of one that was cut during the read may be another's by now.
  return socket.destroyed ? undefined : uid;
}

/** Whether this machine tells whose a connection is: tried on one of our own. */
export async function canFindPeerUid(): Promise<boolean> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  client.on("error", () => {});
  try {
    const [socket] = (await once(server, "connection")) as [Socket];
    const uid = await findPeerUid(socket).catch(() => undefined);
    socket.destroy();
    return uid !== undefined && uid === process.geteuid?.();
  } finally {
    client.destroy();
    server.close();
  }
}
