import type { Clock, Millis } from "../../base/clock.js";
import { AnswerTooLong } from "./connection.js";
import { textIn } from "./protocol-record.js";
import type { WatchedTarget } from "./watched-target.js";

const pauseMs: Millis = 5000;
const longestBytes = 1024 * 1024;

/** Takes pictures of pages that have come to rest: one at a time, and at most one in 5 s for a browser. */
export class Screenshots {
  #lastAt: Millis | undefined;
  #isTaking = false;

  constructor(private readonly clock: Pick<Clock, "monotonic">) {}

  /** A picture that cannot be taken is left out; one that is too large is told without its bytes. */
  async take(target: WatchedTarget): Promise<void> {
    const now = this.clock.monotonic();
    if (this.#isTaking || (this.#lastAt !== undefined && now - this.#lastAt < pauseMs)) return;
    this.#lastAt = now;
    this.#isTaking = true;
    try {
      const png = await pictureOf(target);
      target.tell(
        {
          type: "monitor_screenshot",
          category: "screenshot",
          data: png === undefined ? {} : { png },
          wasCut: png === undefined,
        },
        "Page.captureScreenshot",
      );
    } catch {
      // The page has gone or shows nothing.
    } finally {
      this.#isTaking = false;
    }
  }
}

/** In base64; undefined where it is too large. Throws where there is none. */
async function pictureOf(target: WatchedTarget): Promise<string | undefined> {
  try {
    const png = textIn(await target.ask("Page.captureScreenshot", { format: "png" }), "data") ?? "";
    return (png.length * 3) / 4 > longestBytes ? undefined : png;
  } catch (error) {
    if (error instanceof AnswerTooLong) return undefined;
    throw error;
  }
}
