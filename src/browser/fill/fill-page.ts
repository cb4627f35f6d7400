import { type Clock, type Millis, pause } from "../../base/clock.js";
import { within } from "../../base/deadline.js";
import { decodeBase32, totpCodeOf, totpLeftMs } from "../../base/crypto/totp.js";
import type { FillValue, PageFill, PageFillOutcome } from "../../spec/page-fill.js";
import type { Cdp } from "../cdp/cdp.js";
import { targetInfoOf } from "../cdp/target-event.js";
import { codeOf, FillCalls, FillRefused, FillStopped, hasNotBegun } from "./calls.js";
import { FieldStates } from "./field-states.js";
import { PageFrames, type SearchedFrame } from "./frames.js";
import { inPageCalls, type WriteOutcome } from "./in-page.js";
import { type PinnedTarget, pinTarget, refuseFrames } from "./targets.js";

/** What a fill is given of the browser around it. */
export interface FillContext {
  /** Aborts when the lease is cut or the browser ends. */
  readonly signal: AbortSignal;
  /**
   * Has what clients say to these targets wait, until the returned function is called or a limit is over.
   * Undefined where the page shows another document than when it was opened: nothing is written there.
   */
  hold(targets: readonly string[]): (() => void) | undefined;
  /** Called with the page's target before anything of it is looked at. */
  opened?(page: string): Promise<void>;
}

interface FillParts extends FillContext {
  readonly cdp: Cdp;
  readonly clock: Clock;
}

/** A code that is good for less than this is out of date where it arrives: the next one is waited for. */
const shortestCodeMs: Millis = 3000;

/**
 * Writes values into inputs of a page (docs/vault.md#fill). All targets are found and pinned before the first
 * write, each page and frame is looked at again in the turn of its write, and the first that fails is the
 * last. Nothing is tried twice and nothing is submitted. It never throws: what is known of each field is in
 * the outcome.
 */
export async function fillPage(fill: PageFill, parts: FillParts): Promise<PageFillOutcome> {
  const { cdp, clock, signal } = parts;
  const calls = new FillCalls(cdp, clock, { timeoutMs: fill.timeout_ms, signal });
  const frames = new PageFrames(calls);
  const states = new FieldStates(fill.fields.length);
  try {
    await new PageFilling(fill, { calls, frames, states, parts }).run();
  } catch (error) {
    if (error instanceof FillRefused) return { kind: "refused", why: error.why };
    states.stop(codeOf(error));
  } finally {
    await frames.close();
  }
  return states.outcome();
}

interface FillingParts {
  readonly calls: FillCalls;
  readonly frames: PageFrames;
  readonly states: FieldStates;
  readonly parts: FillParts;
}

interface DueWrite {
  readonly target: PinnedTarget;
  /** It, and those that are to be written after it. */
  readonly left: readonly PinnedTarget[];
  readonly value: FillValue;
}

class PageFilling {
  constructor(
    private readonly fill: PageFill,
    private readonly having: FillingParts,
  ) {}

  async run(): Promise<void> {
    const { frames } = this.having;
    const { page_url: url } = this.fill;
    await this.#openPage();
    const searched = await frames.search(
      this.fill.fields.map(({ selector }) => selector),
      url,
    );
    refuseFrames(searched, this.fill);
    const targets = await this.#pin(searched);
    for (const [index, target] of targets.entries()) await this.#write(index, target, targets.slice(index));
  }

  async #openPage(): Promise<void> {
    const { calls, frames, parts } = this.having;
    const { page_url: url } = this.fill;
    const { targetInfos } = await calls.send("Target.getTargets", {});
    const pages = targetInfos
      .flatMap((info) => targetInfoOf(info) ?? [])
      .filter(({ type, subtype }) => type === "page" && subtype === undefined)
      .filter((page) => url === undefined || page.url === url);
    if (pages.length > 1) throw new FillRefused("ambiguous_page");
    const [page] = pages;
    if (!page) throw new FillRefused("page_not_found");
    if (parts.opened) {
      const limit = { what: "the watch over the page", limitMs: calls.leftMs };
      await calls.untilCut(within(parts.clock, limit, parts.opened(page.targetId)));
    }
    await frames.open(page.targetId);
  }

  /** Looks at every field before any of them is written. */
  async #pin(searched: readonly SearchedFrame[]): Promise<readonly PinnedTarget[]> {
    const { states } = this.having;
    const targets: PinnedTarget[] = [];
    for (const [index, { value }] of this.fill.fields.entries()) {
      states.enter(index);
      const target = pinTarget(searched, index, targets);
      if (target.isSelect) await this.#checkOption(target, value);
      if (value.kind === "totp" && !decodeBase32(value.seed)) throw new FillStopped("execution_failed");
      targets.push(target);
    }
    // The page comes first among the frames: what is written into a frame of it is meant for that page, too.
    const [page] = searched;
    this.#page = page;
    return targets;
  }

  #page: SearchedFrame | undefined;

  async #checkOption({ frame, element }: PinnedTarget, value: FillValue): Promise<void> {
    if (value.kind === "totp") throw new FillStopped("element_not_editable");
    const given = [element, value.text];
    const hasOption = await this.having.calls.call(frame, inPageCalls.hasOption, given);
    if (hasOption !== true) throw new FillStopped("option_not_found");
  }

  async #write(index: number, target: PinnedTarget, left: readonly PinnedTarget[]): Promise<void> {
    const { states, frames, parts } = this.having;
    states.enter(index);
    const value = this.fill.fields[index]?.value;
    if (!value) throw new FillStopped("execution_failed");
    for (let isWritten = false; !isWritten;) {
      await this.#waitForCode(value);
      const release = parts.hold(frames.targets);
      if (!release) throw new FillStopped("target_changed");
      isWritten = await this.#writeNow({ target, left, value }).finally(release);
    }
  }

  /** False where a code is over by now, since the page has taken so long to answer. */
  async #writeNow({ target, left, value }: DueWrite): Promise<boolean> {
    await this.#checkAll(left);
    if (this.#codeWaitMs(value) > 0) return false;
    const text = textOf(value, this.having.parts.clock);
    this.having.states.writing();
    this.#note(await this.#send(target, text));
    return true;
  }

  async #waitForCode(value: FillValue): Promise<void> {
    const { calls, parts } = this.having;
    const waitMs = this.#codeWaitMs(value);
    if (waitMs > 0) await calls.untilCut(pause(parts.clock, waitMs, parts.signal));
  }

  /** How long it is until a code that is good for long enough; 0 where there is nothing to wait for. */
  #codeWaitMs({ kind }: FillValue): Millis {
    if (kind === "text") return 0;
    const { calls, parts } = this.having;
    const leftMs = totpLeftMs(parts.clock.now());
    return leftMs < shortestCodeMs && leftMs + shortestCodeMs < calls.leftMs ? leftMs : 0;
  }

  /** The page and the targets that are left are what they were when they were found. */
  async #checkAll(targets: readonly PinnedTarget[]): Promise<void> {
    const frames = new Set([this.#page, ...targets.map(({ frame }) => frame)]);
    const checks = [...frames].map(async (frame) => {
      if (!frame) return true;
      const elements = targets.filter((target) => target.frame === frame).map(({ element }) => element);
      return await this.having.calls.call(frame, inPageCalls.isSame, [elements]);
    });
    if ((await Promise.all(checks)).some((isSame) => isSame !== true))
      throw new FillStopped("target_changed");
  }

  async #send({ frame, element }: PinnedTarget, text: string): Promise<WriteOutcome> {
    const { calls, states } = this.having;
    try {
      return (await calls.call(frame, inPageCalls.write, [element, text])) as WriteOutcome;
    } catch (error) {
      if (hasNotBegun(error)) states.unwritten();
      throw error;
    }
  }

  #note(outcome: WriteOutcome): void {
    const { states } = this.having;
    switch (outcome) {
      case "filled":
        return states.filled();
      case "target_changed":
      case "option_not_found":
        states.unwritten();
        throw new FillStopped(outcome);
      case "gone":
        throw new FillStopped("target_changed");
      case "not_kept":
        throw new FillStopped("execution_failed");
    }
  }
}

function textOf(value: FillValue, clock: Clock): string {
  if (value.kind === "text") return value.text;
  const key = decodeBase32(value.seed);
  if (!key) throw new FillStopped("execution_failed");
  const code = totpCodeOf(key, clock.now());
  key.fill(0);
  return code;
}
