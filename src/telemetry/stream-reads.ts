import type { Clock, Millis } from "../base/clock.js";
import { RemudaError } from "../base/errors.js";
import type { LeaseId } from "../base/ids.js";
import type { EventPage, EventQuery, EventStore, StreamRef } from "./ports.js";

/**
 * Questions of all readers together: each takes Redis up to 3 ms (256 KiB of events, Redis 7.0), and whoever
 * asks it something else meanwhile waits for them.
 */
const mostAtOnce = 4;
/** A question that takes longer gives its place up: a part of the store that hangs holds up no other. */
const placeMs: Millis = 50;

interface Question {
  readonly ask: () => Promise<unknown>;
  readonly answer: Promise<unknown>;
  readonly settle: (answer: Promise<unknown>) => void;
}
/** The questions about one stream by what they ask, in the order in which they came. */
type Questions = Map<string, Question>;

/**
 * What readers of streams and of their history ask the store. Each stream has one question under way, and
 * streams take turns, so that the readers of one hold up neither those of another nor anything else. Who
 * asks what is asked already and still waits for its turn gets that answer, which brings the readers of one
 * stream into step.
 */
export class StreamReads implements Pick<EventStore, "read" | "last"> {
  /** Those streams come first whose turn was longest ago. */
  readonly #waiting = new Map<LeaseId, Questions>();
  readonly #asking = new Set<LeaseId>();
  #places = mostAtOnce;

  constructor(
    private readonly store: Pick<EventStore, "read" | "last">,
    private readonly clock: Pick<Clock, "after">,
  ) {}

  read(stream: StreamRef, query: EventQuery): Promise<EventPage> {
    const ask = (): Promise<EventPage> => this.store.read(stream, query);
    return this.#enqueue(stream, JSON.stringify(query), ask) as Promise<EventPage>;
  }

  last(stream: StreamRef): Promise<number> {
    return this.#enqueue(stream, "last", () => this.store.last(stream)) as Promise<number>;
  }

  #enqueue({ lease }: StreamRef, name: string, ask: Question["ask"]): Promise<unknown> {
    const questions: Questions = this.#waiting.get(lease) ?? new Map();
    this.#waiting.set(lease, questions);
    const question = questions.get(name) ?? newQuestion(ask);
    questions.set(name, question);
    this.#proceed();
    return question.answer;
  }

  #proceed(): void {
    for (const [lease, questions] of this.#waiting) {
      if (this.#places === 0) return;
      if (this.#asking.has(lease)) continue;
      this.#waiting.delete(lease);
      this.#ask(lease, takeFirst(questions));
      if (questions.size > 0) this.#waiting.set(lease, questions);
    }
  }

  #ask(lease: LeaseId, question: Question | undefined): void {
    if (!question) return;
    this.#asking.add(lease);
    const giveUp = this.#takePlace();
    const answer = question.ask().finally(() => {
      this.#asking.delete(lease);
      giveUp();
      this.#proceed();
    });
    question.settle(answer);
    answer.catch((error: unknown) => this.#failed(lease, error));
  }

  /** Takes a place; the result gives it back, and may be called twice. */
  #takePlace(): () => void {
    this.#places -= 1;
    let isHeld = true;
    const giveUp = (): void => {
      cancel();
      if (!isHeld) return;
      isHeld = false;
      this.#places += 1;
      this.#proceed();
    };
    const cancel = this.clock.after(placeMs, giveUp);
    return giveUp;
  }

  /** Where the store is away, nobody waits for the limits of all who came before. */
  #failed(lease: LeaseId, error: unknown): void {
    if (!(error instanceof RemudaError) || error.code !== "store_unavailable") return;
    const waiting = this.#waiting.get(lease)?.values() ?? [];
    this.#waiting.delete(lease);
    for (const { settle } of waiting) settle(Promise.reject(error));
  }
}

function takeFirst(questions: Questions): Question | undefined {
  for (const [name, question] of questions) {
    questions.delete(name);
    return question;
  }
  return undefined;
}

function newQuestion(ask: Question["ask"]): Question {
  let settle: Question["settle"] = () => {};
  const answer = new Promise<unknown>((resolve) => (settle = resolve));
  return { ask, answer, settle };
}
