import { PassThrough } from "node:stream";
import { openPipe } from "../../../src/browser/cdp/pipe.js";

/** A command as it came. */
export interface Asked {
  readonly id: number;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly sessionId?: string;
}

/** The session that a monitor opens first. */
export const rootSession = "ROOT";

const usual: Readonly<Record<string, object>> = {
  "Target.attachToBrowserTarget": { sessionId: rootSession },
  "Target.getTargets": { targetInfos: [] },
};

/** Speaks CDP on a real pipe by a script: for answers that no Chromium can be brought to give at will. */
export class ScriptedChromium {
  readonly asked: Asked[] = [];
  readonly #input = new PassThrough();
  readonly #output = new PassThrough();
  readonly pipe = openPipe(this.#input, this.#output);
  #text = "";

  /** `refuses` answers a method by an error, and `ignores` not at all. */
  constructor(
    private readonly script: { readonly refuses?: readonly string[]; readonly ignores?: readonly string[] },
  ) {
    this.#input.setEncoding("utf8").on("data", (text: string) => this.#take(text));
  }

  /** Answers a command that was ignored. */
  answer({ id, sessionId }: Asked, result: object): void {
    this.#write({ id, result, sessionId });
  }

  tell(method: string, params: object, sessionId = rootSession): void {
    this.#write({ method, params, sessionId });
  }

  /** A page is there, whose session is called as the page is. */
  tellPage(name: string): void {
    const targetInfo = { targetId: name, type: "page", url: "about:blank", attached: true };
    this.tell("Target.attachedToTarget", { sessionId: name, targetInfo, waitingForDebugger: false });
  }

  exit(): void {
    this.#output.destroy();
  }

  #take(text: string): void {
    const messages = (this.#text + text).split("\0");
    this.#text = messages.pop() ?? "";
    for (const message of messages) this.#hear(JSON.parse(message) as Asked);
  }

  #hear(asked: Asked): void {
    this.asked.push(asked);
    const { id, method, sessionId } = asked;
    if (this.script.ignores?.includes(method)) return;
    if (!this.script.refuses?.includes(method)) return this.answer(asked, usual[method] ?? {});
    this.#write({ id, error: { code: -32000, message: "Not allowed" }, sessionId });
  }

  /** In the order in which Chromium writes the fields. */
  #write(message: object): void {
    this.#output.write(`${JSON.stringify(message)}\0`);
  }
}
