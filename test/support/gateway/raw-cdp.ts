import { CdpFailure } from "../browser/chromium-until.js";
import { openRawSocket, type RawSocket } from "./raw-socket.js";

export interface RawReply {
  readonly id?: number;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly code: number; readonly message: string };
  readonly sessionId?: string;
}

/** A CDP client of nothing but a WebSocket. */
export interface RawCdp extends Omit<RawSocket<RawReply>, "ask"> {
  send(method: string, params?: object, sessionId?: string): Promise<RawReply>;
  /** Attaches to a page, the first or the given one; gives its session. */
  attach(target?: string): Promise<string>;
  /** Its value, undefined where it throws; a page that cannot be asked is a `CdpFailure`. */
  evaluate(expression: string, sessionId: string): Promise<unknown>;
}

export async function connectRaw(url: string, headers: Record<string, string> = {}): Promise<RawCdp> {
  const { ask, ...raw } = await openRawSocket<RawReply>(url, headers);
  const send: RawCdp["send"] = (method, params = {}, sessionId) =>
    ask({ method, params, ...(sessionId === undefined ? {} : { sessionId }) });
  return {
    ...raw,
    send,
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
  };
}

async function firstPage(send: RawCdp["send"]): Promise<string> {
  const infos = (await send("Target.getTargets")).result?.targetInfos as { targetId: string; type: string }[];
  return infos.find(({ type }) => type === "page")?.targetId ?? "";
}
