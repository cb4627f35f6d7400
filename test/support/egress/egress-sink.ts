import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { createServer, type Server, type Socket } from "node:net";

/** Something arrived where nothing may. */
export interface Contact {
  /** What it was: `tcp GET /path`, `tcp tls`, `udp stun`, `udp quic`, `dns name`. */
  readonly what: string;
  /** The address of ours that it came to. */
  readonly at: string;
}

/**
 * A place that has to stay untouched: one port, on every address of this machine, for TCP and UDP. Each
 * attempt has one of its own, so that whatever comes, plain or encrypted, tells whose it is.
 */
export interface Sink {
  readonly port: number;
  readonly contacts: Contact[];
  /** Says what came by another way, such as a question to a name server. */
  record(contact: Contact): void;
  close(): Promise<void>;
}

const attempts = 5;

export async function openSink(): Promise<Sink> {
  for (let left = attempts; left > 0; left -= 1) {
    const tcp = createServer();
    const udp = createSocket({ type: "udp6", ipv6Only: false });
    try {
      await new Promise<void>((resolve, reject) => tcp.once("error", reject).listen(0, "::", resolve));
      const { port } = tcp.address() as { port: number };
      await new Promise<void>((resolve, reject) => udp.once("error", reject).bind(port, "::", resolve));
      return watch(tcp, udp, port);
    } catch {
      // The port is free for one protocol and not for the other.
      tcp.close();
      udp.close();
    }
  }
  throw new Error("no port is free for both TCP and UDP");
}

function watch(tcp: Server, udp: UdpSocket, port: number): Sink {
  const contacts: Contact[] = [];
  const sockets = new Set<Socket>();
  const record = (contact: Contact): void => void contacts.push(contact);
  tcp.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    greet(socket, record);
  });
  udp.on("message", (datagram, { address, port: from }) => {
    record({ what: `udp ${kindOf(datagram)}`, at: `from ${plain(address)}` });
    const reply = stunRefusal(datagram);
    if (reply) udp.send(reply, from, address);
  });
  for (const listener of [tcp, udp]) listener.on("error", () => {});
  return {
    port,
    contacts,
    record,
    async close() {
      for (const socket of sockets) socket.destroy();
      await Promise.all([
        new Promise((resolve) => tcp.close(resolve)),
        new Promise<void>((resolve) => udp.close(resolve)),
      ]);
    },
  };
}

const plain = (address: string): string => address.replace(/^::ffff:(?=\d)/, "");

/** A connection counts from its first moment; what it says first only gives it a name. */
function greet(socket: Socket, record: Sink["record"]): void {
  const contact = { what: "tcp", at: plain(socket.localAddress ?? "") };
  record(contact);
  socket.on("error", () => socket.destroy());
  socket.once("data", (data) => {
    contact.what = `tcp ${kindOf(data)}`;
    const text = data.toString("latin1");
    socket.end(stunRefusal(data) ?? (isHttp.test(text) ? answerTo(text) : ""));
  });
}

const isHttp = /^[A-Z]+ \S+ HTTP\//;
const page = "<!doctype html><title>denied</title>denied";

/** Whoever comes gets what keeps it going: a page that any origin may read. */
const answerTo = (request: string): string =>
  [
    "HTTP/1.1 200 OK",
    "connection: close",
    `content-length: ${page.length}`,
    `content-type: ${/\.js[ ?]/.test(request) ? "text/javascript" : "text/html"}`,
    "access-control-allow-origin: *",
    "access-control-allow-headers: *",
    "access-control-allow-private-network: true",
    "",
    page,
  ].join("\r\n");

const magicCookie = 0x2112a442;
const isStun = (data: Buffer): boolean => data.length >= 20 && data.readUInt32BE(4) === magicCookie;

function kindOf(data: Buffer): string {
  if (isStun(data)) return data.readUInt16BE(0) === 3 ? "turn" : "stun";
  if (data[0] === 0x16) return "tls";
  const [line = ""] = data.toString("latin1").split("\r\n");
  if (isHttp.test(line)) return line.replace(/ HTTP\/.*$/, "").slice(0, 80);
  return (data[0] ?? 0) & 0xc0 && data.length >= 1200 ? "quic" : `${data.length} bytes`;
}

/** An error reply (RFC 8489, 400) to a STUN or TURN request, so that its sender does not go on asking. */
function stunRefusal(data: Buffer): Buffer | undefined {
  if (!isStun(data)) return undefined;
  const reply = Buffer.alloc(28);
  reply.writeUInt16BE(data.readUInt16BE(0) | 0x0110, 0);
  reply.writeUInt16BE(8, 2);
  data.copy(reply, 4, 4, 20);
  reply.writeUInt16BE(0x0009, 20);
  reply.writeUInt16BE(4, 22);
  reply.writeUInt32BE(0x0400, 24);
  return reply;
}
