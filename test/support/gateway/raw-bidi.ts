import { once } from "node:events";
import { WebSocket } from "ws";

export interface BidiReply {
  readonly type: "success" | "error" | "event";
  readonly id?: number | null;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
  readonly result?: Record<string, unknown>;
  readonly error?: string;
  readonly message?: string;
}

/** A WebDriver BiDi client of nothing but a WebSocket. */
export interface RawBidi {
  readonly socket: WebSocket;
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
  send(method: string, params?: object): Promise<BidiReply>;
  /** The first message, seen or to come, that fits. */
  message(fits: (message: BidiReply) => boolean): Promise<BidiReply>;
  /** A new session, and the id of its first page. */
  begin(capabilities?: object): Promise<string>;
  /** Navigates the context and waits until it has loaded. */
  open(context: string, url: string): Promise<BidiReply>;
  evaluate(context: string, expression: string): Promise<unknown>;
  close(): Promise<void>;
}

export async function connectBidi(url: string, headers: Record<string, string> = {}): Promise<RawBidi> {
  const socket = new WebSocket(url, { perMessageDeflate: false, maxPayload: 0, headers });
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.once("close", (code, reason) => resolve({ code, reason: reason.toString() }));
  });
  await once(socket, "open");
  const seen: BidiReply[] = [];
  const watchers = new Set<(message: BidiReply) => void>();
  let last = 0;
  socket.on("message", (data: Buffer) => {
    const message = JSON.parse(data.toString()) as BidiReply;
    seen.push(message);
    for (const watcher of watchers) watcher(message);
  });
  const message: RawBidi["message"] = (fits) => {
    const found = seen.find(fits);
    if (found) return Promise.resolve(found);
    return new Promise((resolve) => {
      const watcher = (each: BidiReply): void => {
        if (!fits(each)) return;
        watchers.delete(watcher);
        resolve(each);
      };
      watchers.add(watcher);
    });
  };
  const send: RawBidi["send"] = (method, params = {}) => {
    last += 1;
    const id = last;
    socket.send(JSON.stringify({ id, method, params }));
    return message((each) => each.id === id);
  };
  return {
    socket,
    closed,
    send,
    message,
    async begin(capabilities = {}) {
      const { type, message: why } = await send("session.new", { capabilities });
      if (type === "error") throw new Error(`session.new: ${why}`);
      return await firstContext(send);
    },
    open: (context, to) => send("browsingContext.navigate", { context, url: to, wait: "complete" }),
    async evaluate(context, expression) {
      const params = { expression, target: { context }, awaitPromise: true };
      const { result } = await send("script.evaluate", params);
      return (result?.["result"] as { value?: unknown } | undefined)?.value;
    },
    async close() {
      socket.close();
      await closed;
    },
  };
}

export async function firstContext(send: RawBidi["send"]): Promise<string> {
  const { result } = await send("browsingContext.getTree");
  const contexts = (result?.["contexts"] ?? []) as { context: string }[];
  return contexts[0]?.context ?? "";
}
