import { openRawSocket, type RawSocket } from "./raw-socket.js";

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
export interface RawBidi extends Omit<RawSocket<BidiReply>, "ask"> {
  /** The methods of all commands that it has sent. */
  readonly sent: readonly string[];
  send(method: string, params?: object): Promise<BidiReply>;
  /** A new session, and the id of its first page. */
  begin(capabilities?: object): Promise<string>;
  /** Navigates the context and waits until it has loaded. */
  open(context: string, url: string): Promise<BidiReply>;
  evaluate(context: string, expression: string): Promise<unknown>;
}

export async function connectBidi(url: string, headers: Record<string, string> = {}): Promise<RawBidi> {
  const { ask, ...raw } = await openRawSocket<BidiReply>(url, headers);
  const sent: string[] = [];
  const send: RawBidi["send"] = (method, params = {}) => {
    sent.push(method);
    return ask({ method, params });
  };
  return {
    ...raw,
    sent,
    send,
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
  };
}

export async function firstContext(send: RawBidi["send"]): Promise<string> {
  const { result } = await send("browsingContext.getTree");
  const contexts = (result?.["contexts"] ?? []) as { context: string }[];
  return contexts[0]?.context ?? "";
}
