import type { Clock, Millis } from "../../base/clock.js";

const idleMs: Millis = 500;
const stillMs: Millis = 1000;
/** A page with more requests than this under way is not followed one by one. */
const mostRequests = 5000;

interface SettlingSteps {
  networkIdle(): void;
  layoutSettled(): void;
  navigationSettled(): void;
}

interface RequestOfPage {
  readonly id: string;
  /** The document that it belongs to. */
  readonly loader: string | undefined;
  /**
   * The CDP session that told of it; a page has several where it has frames in other processes, or workers.
   */
  readonly session: string;
}

/**
 * When a page has come to rest.
 *
 * - The network is idle once no request has been under way for 500 ms; it is told again after each burst.
 * - The layout is settled once it has not shifted for 1 s after the load, once for each navigation.
 * - The navigation is settled when that is so and the document's content has been loaded.
 *
 * A navigation begins all of it anew.
 */
export class Settling {
  readonly #requests = new Map<string, RequestOfPage>();
  #stopIdle: (() => void) | undefined;
  #stopStill: (() => void) | undefined;
  #hasContent = false;
  #isLayoutSettled = false;
  #isNavigationSettled = false;

  constructor(
    private readonly clock: Pick<Clock, "after">,
    private readonly steps: SettlingSteps,
  ) {}

  /** Another document is shown; its own request is already under way. */
  navigated(loader: string | undefined): void {
    this.stop();
    this.#hasContent = this.#isLayoutSettled = this.#isNavigationSettled = false;
    for (const request of this.#requests.values())
      if (request.loader !== loader) this.#requests.delete(request.id);
  }

  contentLoaded(): void {
    this.#hasContent = true;
    this.#settleNavigation();
  }

  loaded(): void {
    this.#waitForStillness();
  }

  /** A document that was kept is shown again. It has been loaded, and Chromium tells no step of that. */
  restored(): void {
    this.contentLoaded();
    this.loaded();
    this.requestsLost();
  }

  shifted(): void {
    if (this.#stopStill) this.#waitForStillness();
  }

  requested(request: RequestOfPage): void {
    this.#stopIdle?.();
    this.#stopIdle = undefined;
    if (this.#requests.size >= mostRequests) return this.requestsLost();
    this.#requests.set(request.id, request);
  }

  answered(id: string): void {
    if (this.#requests.delete(id) && this.#requests.size === 0) this.#waitForIdleness();
  }

  /** It is no longer known which requests are under way: from now on quiet is what counts. */
  requestsLost(): void {
    this.#requests.clear();
    this.#waitForIdleness();
  }

  /** The session tells of requests no more, for now: whether the network is idle is not known. */
  requestsUnseen(session: string): void {
    for (const request of this.#requests.values())
      if (request.session === session) this.#requests.delete(request.id);
    this.#stopIdle?.();
    this.#stopIdle = undefined;
  }

  /** Nothing more will be told of the session's requests: they are over. */
  sessionEnded(session: string): void {
    const ended = [...this.#requests.values()].filter((request) => request.session === session);
    for (const { id } of ended) this.answered(id);
  }

  stop(): void {
    this.#stopIdle?.();
    this.#stopStill?.();
    this.#stopIdle = this.#stopStill = undefined;
  }

  #waitForIdleness(): void {
    this.#stopIdle?.();
    this.#stopIdle = this.clock.after(idleMs, () => {
      this.#stopIdle = undefined;
      this.steps.networkIdle();
    });
  }

  #waitForStillness(): void {
    if (this.#isLayoutSettled) return;
    this.#stopStill?.();
    this.#stopStill = this.clock.after(stillMs, () => {
      this.#stopStill = undefined;
      this.#isLayoutSettled = true;
      this.steps.layoutSettled();
      this.#settleNavigation();
    });
  }

  #settleNavigation(): void {
    if (this.#isNavigationSettled || !this.#hasContent || !this.#isLayoutSettled) return;
    this.#isNavigationSettled = true;
    this.steps.navigationSettled();
  }
}
