import { readFile } from "node:fs/promises";
import { connect, createServer, type AddressInfo, isIPv4, type Socket } from "node:net";
import { once } from "node:events";

/**
 * Writes an address and port as the kernel's table has them: the address is one number in the byte order of
 * this machine, which is little-endian.
 */
function tableName(address: string, port: number): string {
  const bytes = address.split(".").map((part) => Number(part).toString(16).padStart(2, "0"));
  return `${bytes.toReversed().join("")}:${port.toString(16).padStart(4, "0")}`.toUpperCase();
}

/** The state of a connection that its process has let go of, which then is nobody's: its uid says 0. */
const timeWait = "06";

/**
 * The uid that opened the other end of a connection over IPv4 loopback (proc_net(5)); undefined where no
 * process of this network namespace holds it any more.
 */
export async function findPeerUid({
  remoteAddress,
  remotePort,
  localAddress,
  localPort,
}: Socket): Promise<number | undefined> {
  if (!remoteAddress || !localAddress || !isIPv4(remoteAddress) || !isIPv4(localAddress)) return undefined;
  const theirs = `${tableName(remoteAddress, remotePort ?? 0)} ${tableName(localAddress, localPort ?? 0)} `;
  const table = await readFile("/proc/net/tcp", "latin1");
  const at = table.indexOf(theirs);
  if (at < 0) return undefined;
  const [state, , , , uid] = table
    .slice(at + theirs.length, table.indexOf("\n", at))
    .trim()
    .split(/\s+/);
  return state === timeWait || uid === undefined ? undefined : Number(uid);
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
