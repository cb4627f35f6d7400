import { once } from "node:events";
import { WebSocket } from "ws";
import { CdpFailure } from "../browser/chromium-until.js";

export interface RawReply {
  readonly id?: number;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly code: number; readonly message: string };
  readonly sessionId?: string;
}

/** A CDP client of nothing but a WebSocket. */
export interface RawCdp {
  readonly socket: WebSocket;
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
  send(method: string, params?: object, sessionId?: string): Promise<RawReply>;
  /** The first message, seen or to come, that fits. */
  message(fits: (message: RawReply) => boolean): Promise<RawReply>;
  /** Attaches to a page, the first or the given one; gives its session. */
  attach(target?: string): Promise<string>;
  /** Its value, undefined where it throws; a page that cannot be asked is a `CdpFailure`. */
  evaluate(expression: string, sessionId: string): Promise<unknown>;
  close(): Promise<void>;
}

export async function connectRaw(url: string, headers: Record<string, string> = {}): Promise<RawCdp> {
  const socket = new WebSocket(url, { perMessageDeflate: false, maxPayload: 0, headers });
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.once("close", (code, reason) => resolve({ code, reason: reason.toString() }));
  });
  await once(socket, "open");
  const seen: RawReply[] = [];
  const watchers = new Set<(message: RawReply) => void>();
  let last = 0;
  socket.on("message", (data: Buffer) => {
    const message = JSON.parse(data.toString()) as RawReply;
    seen.push(message);
    for (const watcher of watchers) watcher(message);
  });
  const message: RawCdp["message"] = (fits) => {
    const found = seen.find(fits);
    if (found) return Promise.resolve(found);
    return new Promise((resolve) => {
      const watcher = (each: RawReply): void => {
        if (!fits(each)) return;
        watchers.delete(watcher);
        resolve(each);
      };
      watchers.add(watcher);
    });
  };
  const send: RawCdp["send"] = (method, params = {}, sessionId) => {
    last += 1;
    const id = last;
    socket.send(JSON.stringify({ id, method, params, ...(sessionId === undefined ? {} : { sessionId }) }));
    return message((each) => each.id === id);
  };
  return {
    socket,
    closed,
    send,
    message,
    async attach(target) {
      const targetId = target ?? (await firstPage(send));
      const { result } = await send("Target.attachToTarget", { targetId, flatten: true });
      return String(result?.sessionId);
    },
    async evaluate(expression, sessionId) {
      const { result, error } = await send(
        "Runtime.evaluate",
        { expression, returnByValue: true, awaitPromise: true },
        sessionId,
      );
      if (error) throw new CdpFailure(`Runtime.evaluate: ${error.message}`);
      return (result?.result as { value?: unknown } | undefined)?.value;
    },
    async close() {
      socket.close();
      await closed;
    },
  };
}

async function firstPage(send: RawCdp["send"]): Promise<string> {
  const infos = (await send("Target.getTargets")).result?.targetInfos as { targetId: string; type: string }[];
  return infos.find(({ type }) => type === "page")?.targetId ?? "";
}
