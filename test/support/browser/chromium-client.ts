import type { Chromium } from "../../../src/browser/chromium.js";
import { firstClientId, type Frame, summarize, wholeOf } from "../../../src/browser/cdp/frame.js";
import { CdpFailure, heard, until } from "./chromium-until.js";

interface Message {
  readonly id?: number;
  readonly sessionId?: string;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly message: string };
}

export interface Target {
  readonly targetId: string;
  readonly type: string;
  readonly url: string;
}

/**
 * What a client of the gateway does to a browser: commands with ids of its own range, and events kept by
 * name.
 */
export class PipeClient {
  readonly #pending = new Map<number, (message: Message) => void>();
  readonly events: Message[] = [];
  #lastId: number;

  /** Two clients of one browser count from different ids. */
  constructor(
    private readonly chromium: Chromium,
    ahead = 0,
  ) {
    this.#lastId = firstClientId + ahead;
    chromium.pipe.onFrame((frame) => this.#take(frame));
  }

  async send(method: string, params: object = {}, sessionId?: string): Promise<Record<string, unknown>> {
    this.#lastId += 1;
    const id = this.#lastId;
    const answer = new Promise<Message>((resolve) => this.#pending.set(id, resolve));
    this.chromium.pipe.send(JSON.stringify({ id, method, params, ...(sessionId && { sessionId }) }));
    const { result, error } = await heard(method, answer);
    if (error) throw new CdpFailure(`${method}: ${error.message}`);
    return result ?? {};
  }

  async targets(type = "page"): Promise<Target[]> {
    const { targetInfos } = await this.send("Target.getTargets");
    return (targetInfos as Target[]).filter((target) => target.type === type);
  }

  /** A session on the given page, or on the first. */
  async attach(targetId?: string): Promise<string> {
    const target = targetId ?? (await this.targets())[0]?.targetId;
    const { sessionId } = await this.send("Target.attachToTarget", { targetId: target, flatten: true });
    return sessionId as string;
  }

  async evaluate(expression: string, session: string): Promise<unknown> {
    const given = { expression, awaitPromise: true, returnByValue: true, userGesture: true };
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", given, session);
    if (exceptionDetails) throw new Error(JSON.stringify(exceptionDetails));
    return (result as { value?: unknown }).value;
  }

  /** Follows a link to a file, as a person would. */
  async download(path: string, session: string): Promise<void> {
    await this.evaluate(
      `(() => {
        const link = document.createElement("a");
        [link.href, link.download] = [${JSON.stringify(path)}, ""];
        document.body.append(link);
        link.click();
      })()`,
      session,
    );
  }

  /** Navigates and waits until the document there is complete; gives the text of an error page's failure. */
  async open(url: string, session: string): Promise<string | undefined> {
    const { errorText } = await this.send("Page.navigate", { url }, session);
    if (errorText !== undefined) return errorText as string;
    await until(
      `${url} loaded`,
      async () => (await this.evaluate("document.readyState + location.href", session)) === `complete${url}`,
    );
    return undefined;
  }

  #take(frame: Frame): void {
    const { id, method } = summarize(frame);
    if (id !== undefined && id > firstClientId)
      this.#pending.get(id)?.(JSON.parse(wholeOf(frame).toString()) as Message);
    else if (method !== undefined) this.events.push(JSON.parse(wholeOf(frame).toString()) as Message);
  }
}
