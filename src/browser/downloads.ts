import type { Millis } from "../base/clock.js";
import type { Cdp } from "./cdp/cdp.js";

/** A page may begin as many as it likes, and one alone has the browser replaced. */
const mostNoted = 1000;

/**
 * The downloads of a browser, whoever has begun them and in whichever context. One goes on when its page is
 * closed and its file is removed (docs/chromium.md#clearing-a-used-browser).
 */
export class Downloads {
  /**
   * Holds guids. What Chromium calls canceled may be resumed without a word (Chromium 156,
   * docs/chromium.md#clearing-a-used-browser), so that only a completed download has come to its end.
   */
  readonly #unfinished = new Set<unknown>();

  constructor(
    private readonly cdp: Cdp,
    private readonly directory: string,
  ) {
    cdp.on("Browser.downloadWillBegin", ({ guid }) => this.#note(guid));
    cdp.on("Browser.downloadProgress", ({ guid, state }) => {
      if (state === "completed") this.#unfinished.delete(guid);
    });
  }

  /** Without a guid, where the address is too long to be read, and beyond the most: one that never ends. */
  #note(guid: unknown): void {
    this.#unfinished.add(this.#unfinished.size < mostNoted ? guid : undefined);
  }

  /** Has them land in the browser's own directory; another session's choice holds until that ends. */
  async allow(to: { limitMs?: Millis } = {}): Promise<void> {
    const { directory: downloadPath } = this;
    const params = { behavior: "allow", downloadPath, eventsEnabled: true } as const;
    await this.cdp.send("Browser.setDownloadBehavior", params, to);
  }

  /** A difference for a reset, where one has begun and was not completed. */
  differences(): readonly string[] {
    return this.#unfinished.size > 0 ? ["downloads: one was not completed"] : [];
  }
}
