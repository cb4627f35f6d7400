import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** What had passed of an upload when it stalled. */
export interface Stalled {
  /** The path of the object, with its bucket. */
  readonly path: string;
  /** What the store has got of the body. */
  readonly body: Buffer;
  readonly length: number;
}

/** Stands before a store that speaks S3, and holds up an upload in the middle of it. */
export interface StallingProxy {
  readonly endpoint: string;
  /**
   * The store gets the head of the next upload and such a part of the body (0 to 1, never all), and then
   * nothing more. Resolves then.
   */
  stallAt(part: number): Promise<Stalled>;
  /** Closes the connections that are held up, and lets uploads through again. */
  drop(): void;
  close(): Promise<void>;
}

const headEnd = "\r\n\r\n";

export async function openStallingProxy(target: string): Promise<StallingProxy> {
  const { port, hostname } = new URL(target);
  const open = new Set<Socket>();
  const held = new Set<Socket>();
  let pending: { part: number; stalled: (told: Stalled) => void } | undefined;

  const carry = (socket: Socket): void => {
    const onward = connect(Number(port), hostname);
    let upload = Buffer.alloc(0);
    const hold = (told: Stalled, head: Buffer): void => {
      held.add(socket).add(onward);
      const { stalled } = pending ?? {};
      pending = undefined;
      // The store has it before anybody is told, so that nothing of it is lost with the connection.
      onward.write(Buffer.concat([head, told.body]), () => stalled?.(told));
    };
    socket.on("data", (piece: Buffer) => {
      if (held.has(socket)) return;
      const isUpload = upload.length > 0 || piece.toString("latin1", 0, 4) === "PUT ";
      if (!pending || !isUpload) return void onward.write(piece);
      upload = Buffer.concat([upload, piece]);
      const told = stalledOf(upload, pending.part);
      if (told) hold(told, upload.subarray(0, upload.indexOf(headEnd) + headEnd.length));
    });
    onward.on("data", (piece: Buffer) => void socket.write(piece));
    for (const [one, other] of [
      [socket, onward],
      [onward, socket],
    ] as const) {
      open.add(one);
      one
        .on("error", () => {})
        .once("close", () => {
          open.delete(one);
          held.delete(one);
          other.destroy();
        });
    }
  };
  const server = createServer(carry).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stallAt: (part) => new Promise((resolve) => (pending = { part, stalled: resolve })),
    drop() {
      for (const socket of held) socket.destroy();
    },
    async close() {
      server.close();
      for (const socket of open) socket.destroy();
      await once(server, "close");
    },
  };
}

/** Undefined while less has come than is to pass. */
function stalledOf(upload: Buffer, part: number): Stalled | undefined {
  const end = upload.indexOf(headEnd);
  if (end < 0) return undefined;
  const head = upload.toString("latin1", 0, end);
  const length = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0);
  const most = Math.min(Math.floor(length * part), length - 1);
  const body = upload.subarray(end + headEnd.length, end + headEnd.length + most);
  const [, path = ""] = /^PUT ([^ ?]*)/.exec(head) ?? [];
  return body.length === most
    ? { path: decodeURIComponent(path), body: Buffer.from(body), length }
    : undefined;
}
