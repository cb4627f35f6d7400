import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { connect, type Socket } from "node:net";
import { Secret } from "../../../src/base/crypto/secret.js";
import type { Upstream } from "../../../src/registry/proxies/proxy.js";
import { testCertificate, testKey } from "./egress-certificate.js";
import { listenOn, openRawOrigin, type TestServer } from "./egress-origin.js";

/** What the password of a test's upstream is. */
export const upstreamPassword = "p:ss w%rd";

export interface TestUpstream extends TestServer {
  /** What it was asked for: `CONNECT host:port`, `GET http://…`. */
  readonly asked: string[];
  /** The upstream as the rules name it. */
  readonly upstream: Upstream;
}

interface Wanted {
  readonly protocol: "http" | "https" | "socks5";
  /** Where whatever it is asked for really is. */
  readonly port: number;
}

/** A real proxy, with a password, that leads every target to one port of loopback. */
export async function openUpstream({ protocol, port }: Wanted): Promise<TestUpstream> {
  const asked: string[] = [];
  const served =
    protocol === "socks5"
      ? await openSocks(port, asked)
      : await openHttpProxy({ isSecure: protocol === "https", port, asked });
  const secured = protocol === "https" ? { caBundle: testCertificate } : {};
  return {
    ...served,
    asked,
    upstream: {
      id: `proxy-${protocol}`,
      protocol,
      host: "127.0.0.1",
      port: served.port,
      username: "user",
      password: new Secret(upstreamPassword),
      bypass: [],
      ...secured,
    },
  };
}

const authorization = `Basic ${Buffer.from(`user:${upstreamPassword}`).toString("base64")}`;
const isKnown = ({ headers }: IncomingMessage): boolean => headers["proxy-authorization"] === authorization;

function join(one: Socket, other: Socket): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const)
    from
      .on("error", () => to.destroy())
      .once("close", () => to.destroy())
      .pipe(to);
}

function openHttpProxy({
  isSecure,
  port,
  asked,
}: {
  isSecure: boolean;
  port: number;
  asked: string[];
}): Promise<TestServer> {
  const plain = (request: IncomingMessage, response: ServerResponse): void => {
    if (!isKnown(request)) return void response.writeHead(407, { "proxy-authenticate": "Basic" }).end();
    asked.push(`${request.method} ${request.url}`);
    response.end(`plain ${request.headers.host}`);
  };
  const server = isSecure
    ? createSecureServer({ key: testKey, cert: testCertificate }, plain)
    : createServer(plain);
  server.on("connect", (request: IncomingMessage, socket: Socket, head: Buffer) => {
    if (!isKnown(request))
      return void socket.end("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n");
    asked.push(`CONNECT ${request.url}`);
    const onward = connect(port, "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      onward.write(head);
      join(socket, onward);
    });
  });
  return listenOn(server);
}

/** The least of RFC 1928 and RFC 1929: CONNECT with a password. */
const openSocks = (port: number, asked: string[]): Promise<TestServer> =>
  openRawOrigin((socket) => {
    const steps = [
      () => void socket.write(Buffer.from([5, 2])),
      (data: Buffer) => {
        const [name, password] = [
          data.subarray(2, 2 + (data[1] ?? 0)).toString(),
          data.subarray(3 + (data[1] ?? 0)).toString(),
        ];
        const isRight = name === "user" && password === upstreamPassword;
        socket.write(Buffer.from([1, isRight ? 0 : 1]));
      },
      (data: Buffer) => {
        asked.push(`SOCKS ${socksTarget(data)}`);
        const onward = connect(port, "127.0.0.1", () => {
          socket.write(Buffer.from([5, 0, 0, 1, 127, 0, 0, 1, 0, 0]));
          join(socket, onward);
        });
      },
    ];
    const step = (data: Buffer): void => {
      steps.shift()?.(data);
      if (steps.length === 0) socket.off("data", step);
    };
    socket.on("data", step);
  });

function socksTarget(data: Buffer): string {
  const port = data.readUInt16BE(data.length - 2);
  if (data[3] === 1) return `${data.subarray(4, 8).join(".")}:${port}`;
  return `${data.subarray(5, 5 + (data[4] ?? 0)).toString()}:${port}`;
}
