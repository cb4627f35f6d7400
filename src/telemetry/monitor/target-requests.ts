import type { ProtocolRecord } from "./protocol-record.js";

export interface Asked {
  readonly fields: ProtocolRecord;
  readonly isCut: boolean;
}

/** The head of an answer, and how much of its body is told. */
interface Answer {
  readonly fields: ProtocolRecord;
  readonly wasCut: boolean;
  readonly bodyBytes: number;
}

/** What is told of a request later, as JSON, so that what it counts for is the memory that it takes. */
interface HeldRequest {
  readonly asked: string;
  answer?: string;
  bytes: number;
}

/** Older requests of a session are forgotten: their answers are not told. */
const mostOpen = 1000;
/** Pages and servers choose how long the heads of requests are, and how long these are under way. */
const mostBytes = 16 * 1024 * 1024;
/** What a request takes in V8 besides its texts, and more. */
const bytesOfRequest = 256;

/** The requests under way of one CDP session. */
export class TargetRequests {
  readonly #held = new Map<string, HeldRequest>();
  #bytes = 0;

  constructor(private readonly ofBrowser = new RequestBytes()) {}

  get bytes(): number {
    return this.#bytes;
  }

  add(id: string, asked: Asked): void {
    // One that was redirected comes again.
    this.#forget(id);
    if (this.#held.size >= mostOpen) this.forgetOldest();
    const request = { asked: JSON.stringify(asked), bytes: 0 };
    this.#held.set(id, request);
    this.#count(request, bytesOfRequest + bytesOf(id) + bytesOf(request.asked));
  }

  has(id: string): boolean {
    return this.#held.has(id);
  }

  answered(id: string, answer: Answer): void {
    const request = this.#held.get(id);
    if (!request) return;
    const before = request.answer === undefined ? 0 : bytesOf(request.answer);
    request.answer = JSON.stringify(answer);
    this.#count(request, bytesOf(request.answer) - before);
  }

  asked(id: string): Asked | undefined {
    const request = this.#held.get(id);
    return request && (JSON.parse(request.asked) as Asked);
  }

  /** What was told of it, which is forgotten. */
  take(id: string): { readonly asked: Asked; readonly answer: Answer | undefined } | undefined {
    const request = this.#forget(id);
    if (!request) return undefined;
    const { asked, answer } = request;
    return {
      asked: JSON.parse(asked) as Asked,
      answer: answer === undefined ? undefined : (JSON.parse(answer) as Answer),
    };
  }

  forgetOldest(): void {
    const [oldest] = this.#held.keys();
    if (oldest !== undefined) this.#forget(oldest);
  }

  clear(): void {
    for (const id of this.#held.keys()) this.#forget(id);
  }

  #forget(id: string): HeldRequest | undefined {
    const request = this.#held.get(id);
    this.#held.delete(id);
    if (request) this.#count(request, -request.bytes);
    return request;
  }

  #count(request: HeldRequest, bytes: number): void {
    request.bytes += bytes;
    this.#bytes += bytes;
    this.ofBrowser.count(this, bytes);
  }
}

/** What is held of the requests under way, of all sessions of one browser together. */
export class RequestBytes {
  readonly #sessions = new Set<TargetRequests>();
  #held = 0;

  get held(): number {
    return this.#held;
  }

  /** Where it is too much by now, the session that holds most forgets what is oldest of it. */
  count(session: TargetRequests, bytes: number): void {
    this.#held += bytes;
    if (session.bytes > 0) this.#sessions.add(session);
    else this.#sessions.delete(session);
    while (this.#held > mostBytes) this.#largest()?.forgetOldest();
  }

  #largest(): TargetRequests | undefined {
    let largest: TargetRequests | undefined;
    for (const session of this.#sessions) if (session.bytes > (largest?.bytes ?? 0)) largest = session;
    return largest;
  }
}

/** V8 has two bytes for each character of a text where one of them is beyond Latin-1. */
const bytesOf = (text: string): number => (/[\u0100-\uffff]/.test(text) ? 2 : 1) * text.length;
