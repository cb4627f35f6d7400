import { execFileSync } from "node:child_process";
import type { LookupOptions } from "node:dns";
import { once } from "node:events";
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { type PrepareRequestFunction, Server as ProxyServer } from "proxy-chain";

/** A real proxy on loopback, and what it was asked. */
export interface UpstreamProxy {
  readonly port: number;
  /** Targets as `host:port`, of requests whose credentials it took. */
  readonly targets: readonly string[];
  close(): Promise<void>;
}
export interface Credentials {
  readonly username: string;
  readonly password: string;
}
export interface ProxyWishes {
  readonly credentials?: Credentials;
  readonly tls?: { readonly key: string; readonly cert: string };
}

/** Whatever is asked for is on loopback: so tests may use public names. */
const loopback = ((
  _host: string,
  { all }: LookupOptions,
  answer: (fault: null, found: unknown, family?: number) => void,
) => (all ? answer(null, [{ address: "127.0.0.1", family: 4 }]) : answer(null, "127.0.0.1", 4))) as never;

/** HTTP, or HTTPS with `tls`, by proxy-chain. */
export async function startHttpProxy({ credentials, tls }: ProxyWishes = {}): Promise<UpstreamProxy> {
  const targets: string[] = [];
  const prepareRequestFunction: PrepareRequestFunction = ({ username, password, hostname, port }) => {
    if (credentials && (username !== credentials.username || password !== credentials.password))
      return { requestAuthentication: true };
    targets.push(`${hostname}:${port}`);
    return { dnsLookup: loopback };
  };
  const common = { port: 0, host: "127.0.0.1", prepareRequestFunction };
  const server = new ProxyServer(tls ? { ...common, serverType: "https", httpsOptions: tls } : common);
  server.on("tlsError", () => {});
  await server.listen();
  return { port: server.port, targets, close: () => server.close(true) };
}

/** What a client of SOCKS5 says, in order: RFC 1928 and 1929. */
async function serveSocks(
  socket: Socket,
  credentials: Credentials | undefined,
  targets: string[],
): Promise<void> {
  const read = readerOf(socket);
  await read((await read(2))[1] ?? 0);
  socket.write(Buffer.from([5, credentials ? 2 : 0]));
  if (credentials) {
    const username = (await read((await read(2))[1] ?? 0)).toString();
    const password = (await read((await read(1))[0] ?? 0)).toString();
    const isRight = username === credentials.username && password === credentials.password;
    socket.write(Buffer.from([1, isRight ? 0 : 1]));
    if (!isRight) return void socket.end();
  }
  const [, , , kind = 0] = await read(4);
  const host =
    kind === 3
      ? (await read((await read(1))[0] ?? 0)).toString()
      : [...(await read(kind === 1 ? 4 : 16))].join(".");
  const port = (await read(2)).readUInt16BE();
  targets.push(`${host}:${port}`);
  const onward = connect({ host: "127.0.0.1", port });
  onward.on("error", () => socket.destroy());
  socket.on("close", () => onward.destroy());
  await once(onward, "connect");
  socket.write(Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]));
  socket.pipe(onward).pipe(socket);
}

const readerOf =
  (socket: Socket) =>
  async (bytes: number): Promise<Buffer> => {
    if (bytes === 0) return Buffer.alloc(0);
    for (;;) {
      const piece = socket.read(bytes) as Buffer | null;
      if (piece) return piece;
      await once(socket, "readable");
    }
  };

export async function startSocksProxy(credentials?: Credentials): Promise<UpstreamProxy> {
  const targets: string[] = [];
  return {
    targets,
    ...(await startTcp(
      (socket) => void serveSocks(socket, credentials, targets).catch(() => socket.destroy()),
    )),
  };
}

/** Takes connections and never says a word. */
export const startSilent = async (): Promise<UpstreamProxy> => ({
  targets: [],
  ...(await startTcp(() => {})),
});

async function startTcp(serve: (socket: Socket) => void): Promise<Pick<UpstreamProxy, "port" | "close">> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {}).on("close", () => sockets.delete(socket));
    serve(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

export interface Origin {
  readonly port: number;
  /** `method host url` of each request. */
  readonly requests: readonly string[];
  answer(reply: (request: IncomingMessage, response: ServerResponse) => void): void;
  close(): Promise<void>;
}

/** A web server on loopback that answers as it was told last; at first with the address 203.0.113.7. */
export async function startOrigin(): Promise<Origin> {
  const requests: string[] = [];
  let reply = (_request: IncomingMessage, response: ServerResponse): void =>
    void response.end('{"ip": "203.0.113.7"}');
  const server = createHttpServer((request, response) => {
    requests.push(`${request.method} ${request.headers.host} ${request.url}`);
    reply(request, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    requests,
    answer: (next) => void (reply = next),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** A certificate that signs itself, for 127.0.0.1 and proxy.test, with its key. */
export function makeCertificate(): { readonly key: string; readonly cert: string } {
  const args = [
    "req",
    "-x509",
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:prime256v1",
    "-nodes",
    "-days",
    "2",
    "-subj",
    "/CN=proxy.test",
  ];
  const made = execFileSync(
    "openssl",
    [...args, "-addext", "subjectAltName=IP:127.0.0.1,DNS:proxy.test", "-keyout", "-", "-out", "-"],
    { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] },
  );
  const block = (label: string): string =>
    new RegExp(`-----BEGIN ${label}-----[\\s\\S]*?-----END ${label}-----`).exec(made)?.[0] ?? "";
  return { key: block("PRIVATE KEY"), cert: block("CERTIFICATE") };
}
