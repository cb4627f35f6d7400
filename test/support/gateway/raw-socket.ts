import { once } from "node:events";
import { WebSocket } from "ws";
import { heard } from "../browser/chromium-until.js";

/**
 * A client of nothing but a WebSocket whose messages are JSON and whose answers bear the id of their command.
 */
export interface RawSocket<Message> {
  readonly socket: WebSocket;
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
  /** Sends a command under the next id; gives its answer. */
  ask(command: object): Promise<Message>;
  /** The first message, seen or to come, that fits; `what` is named where it does not come. */
  message(fits: (message: Message) => boolean, what?: string): Promise<Message>;
  close(): Promise<void>;
}

export async function openRawSocket<Message extends { readonly id?: number | null }>(
  url: string,
  headers: Record<string, string>,
): Promise<RawSocket<Message>> {
  const socket = new WebSocket(url, { perMessageDeflate: false, maxPayload: 0, headers });
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.once("close", (code, reason) => resolve({ code, reason: reason.toString() }));
  });
  await once(socket, "open");
  const message = watchMessages<Message>(socket);
  let last = 0;
  return {
    socket,
    closed,
    message,
    ask(command) {
      last += 1;
      const id = last;
      socket.send(JSON.stringify({ id, ...command }));
      return message((each) => each.id === id, JSON.stringify(command).slice(0, 200));
    },
    async close() {
      socket.close();
      await closed;
    },
  };
}

function watchMessages<Message>(socket: WebSocket): RawSocket<Message>["message"] {
  const seen: Message[] = [];
  const watchers = new Set<(message: Message) => void>();
  socket.on("message", (data: Buffer) => {
    const message = JSON.parse(data.toString()) as Message;
    seen.push(message);
    for (const watcher of watchers) watcher(message);
  });
  return (fits, what = `a message that ${fits.toString().slice(0, 200)}`) => {
    const found = seen.find(fits);
    if (found) return Promise.resolve(found);
    const coming = new Promise<Message>((resolve) => {
      const watcher = (each: Message): void => {
        if (!fits(each)) return;
        watchers.delete(watcher);
        resolve(each);
      };
      watchers.add(watcher);
    });
    return heard(what, coming, () => socket.readyState === WebSocket.OPEN);
  };
}
