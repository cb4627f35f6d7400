import { isRecord } from "../../base/is-record.js";
import { measure } from "../cdp/json-shape.js";
import { shapeLimits } from "../cdp/command.js";
import {
  capabilitiesOf,
  findOptionsIn,
  findSessionFacts,
  mapperOptionsOf,
  matchCapabilities,
  type SessionFacts,
  type SessionOptions,
} from "./capabilities.js";
import type { BidiCommand, MapperCallbacks } from "./mapper.js";

/** What a mapper process is told first. */
export interface MapperSetup {
  readonly session: SessionFacts;
  /** Set where the session was made by HTTP; else the client makes it by `session.new`. */
  readonly options?: SessionOptions;
}

/**
 * Reads the setup that another process has written; throws where it is anything else. Fields are looked at
 * one by one, since TypeBox would take 25 MB of each mapper.
 */
export function parseSetup(text: string): MapperSetup {
  const given: unknown = JSON.parse(text);
  const { session: facts, options } = isRecord(given) ? given : {};
  const session = findSessionFacts(facts);
  if (!session) throw new Error("the setup of a mapper names no session");
  if (options === undefined) return { session };
  const chosen = findOptionsIn(options);
  if (!chosen) throw new Error("the setup of a mapper has options that there are not");
  return { session, options: chosen };
}

interface ConversationParts {
  readonly setup: MapperSetup;
  readonly mapper: { start(): Promise<void>; fromClient(command: BidiCommand): void };
  send(message: string): void;
  /** Ends the connection once what was sent has gone; the session of the browser stays. */
  end(): void;
}

/** The code of an error (WebDriver BiDi, 4.4). */
type ErrorWord =
  | "invalid argument"
  | "invalid session id"
  | "session not created"
  | "unknown error"
  | "unsupported operation";

/** The mapper's own `session.new` has an id that no client can choose. */
const startId = -1;
/** A client by CDP may have as many. */
const mostPending = 10_000;

/**
 * What one client says by WebDriver BiDi. Sessions are ours: the mapper knows no session's end and no id.
 * Everything else is the mapper's.
 */
export class Conversation implements Pick<MapperCallbacks, "toClient"> {
  #state: "none" | "starting" | "started" = "none";
  /** What was sent while the session started, in its order. */
  readonly #early: BidiCommand[] = [];
  #pending = 0;
  #onStarted: (message: Readonly<Record<string, unknown>>) => void = () => {};

  constructor(private readonly parts: ConversationParts) {
    const { options } = parts.setup;
    if (options) this.#start(options).catch(() => parts.end());
  }

  /** A message of the client. */
  take(text: Buffer): void {
    const shape = measure(text, shapeLimits);
    if (typeof shape === "string") return this.#refuse(null, "invalid argument", `The message is ${shape}`);
    const parsed = parse(text);
    if ("fault" in parsed) return this.#refuse(parsed.id, "invalid argument", parsed.fault);
    this.#carryOut(parsed);
  }

  /** A message of the mapper. */
  toClient(message: object): void {
    const { stacktrace: _, ...told } = message as Record<string, unknown>;
    if (told["id"] === startId) return this.#onStarted(told);
    if (told["type"] !== "event") this.#pending -= 1;
    this.#send(told);
  }

  #carryOut(command: BidiCommand): void {
    const { id, method } = command;
    if (method === "session.status")
      return this.#answer(id, {
        ready: this.#state === "none",
        message: this.#state === "none" ? "" : "already connected",
      });
    if (method === "session.new") return this.#new(command);
    if (this.#state === "none")
      return this.#refuse(id, "invalid session id", "There is no session: send session.new first");
    const farewell = farewellTo(command);
    if (farewell) return this.#end(id, farewell);
    const why = whyRefused(command);
    if (why !== undefined) return this.#refuse(id, "unsupported operation", why);
    if (this.#pending >= mostPending)
      return this.#refuse(id, "unknown error", `More than ${mostPending} commands wait for their answers`);
    this.#pending += 1;
    if (this.#state === "starting" || this.#early.length > 0) this.#early.push(command);
    else this.parts.mapper.fromClient(command);
  }

  #new({ id, params }: BidiCommand): void {
    const { session } = this.parts.setup;
    if (this.#state !== "none") return this.#refuse(id, "session not created", "There is a session already");
    const matched = matchCapabilities(params["capabilities"], session.product);
    if (matched.kind === "refused") return this.#refuse(id, matched.error, matched.message);
    const { options } = matched;
    this.#start(options).then(
      () => this.#answer(id, { sessionId: session.id, capabilities: capabilitiesOf(options, session) }),
      (error: unknown) => {
        this.#refuse(
          id,
          "session not created",
          error instanceof Error ? error.message : "The browser gave no answer",
        );
        this.parts.end();
      },
    );
  }

  async #start(options: SessionOptions): Promise<void> {
    this.#state = "starting";
    await this.parts.mapper.start();
    const told = await new Promise<Readonly<Record<string, unknown>>>((resolve) => {
      this.#onStarted = resolve;
      const params = { capabilities: { alwaysMatch: mapperOptionsOf(options) } };
      this.parts.mapper.fromClient({ id: startId, method: "session.new", params });
    });
    if (told["type"] === "error") throw new Error(String(told["message"]));
    this.#state = "started";
    // After whoever waits for the start has answered. What comes until then waits behind the others.
    setImmediate(() => {
      for (const command of this.#early) this.parts.mapper.fromClient(command);
      this.#early.length = 0;
    });
  }

  #end(id: number, result: object): void {
    this.#answer(id, result);
    this.parts.end();
  }

  #answer(id: number, result: object): void {
    this.#send({ type: "success", id, result });
  }

  #refuse(id: number | null, error: ErrorWord, message: string): void {
    this.#send({ type: "error", id, error, message });
  }

  #send(message: object): void {
    this.parts.send(JSON.stringify(message));
  }
}

/**
 * The answer to a command that ends the client's connection. The browser stays for others, and for whoever
 * comes back.
 */
function farewellTo({ method, params }: BidiCommand): object | undefined {
  if (method === "session.end" || method === "browser.close") return {};
  return method === "goog:cdp.sendCommand" && params["method"] === "Browser.close"
    ? { result: {} }
    : undefined;
}

/** What the mapper would carry out otherwise than was meant, or pass over in silence. */
function whyRefused({ method, params }: BidiCommand): string | undefined {
  const named = ["proxy", "goog:proxyServer", "goog:proxyBypassList"].find(
    (name) => params[name] !== undefined,
  );
  return method === "browser.createUserContext" && named !== undefined
    ? `${named} is refused: a context has the proxy of its session`
    : undefined;
}

interface MalformedCommand {
  readonly fault: string;
  readonly id: number | null;
}

function parse(text: Buffer): BidiCommand | MalformedCommand {
  let message: unknown;
  try {
    message = JSON.parse(text.toString());
  } catch {
    return { fault: "The message is no JSON", id: null };
  }
  if (!isRecord(message)) return { fault: "The message is no object", id: null };
  const { id, method, params, "goog:channel": channel } = message;
  if (typeof id !== "number" || !Number.isSafeInteger(id) || id < 0)
    return { fault: "id is no unsigned integer", id: null };
  if (typeof method !== "string") return { fault: "method is no text", id };
  if (!isRecord(params)) return { fault: "params is no object", id };
  if (channel !== undefined && typeof channel !== "string") return { fault: "goog:channel is no text", id };
  return { id, method, params, ...(channel && { "goog:channel": channel }) };
}
