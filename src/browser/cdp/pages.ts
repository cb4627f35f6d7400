import { type Log, textOf } from "../../base/log.js";
import type { Cdp } from "./cdp.js";
import type { LaunchSpec } from "../chromium.js";
import { type TargetInfo, targetInfoOf } from "./target-event.js";
import { placeWindow } from "./window.js";

/**
 * The pages of the default context, where clients find them open. When the last one goes (a script's
 * `window.close()`, a tab closed by hand), a blank one is opened, so that the next client finds a page.
 */
export class Pages {
  readonly #open = new Set<string>();
  #context: string | undefined;
  #lastOrigin: string | undefined;
  #isKept = true;
  #arrived: (page: string) => void = () => {};
  /** The page Chromium starts with. */
  readonly first = new Promise<string>((resolve) => {
    this.#arrived = resolve;
  });

  constructor(
    private readonly cdp: Cdp,
    private readonly spec: LaunchSpec,
    private readonly log: Log,
  ) {
    cdp.on("Target.targetCreated", ({ targetInfo }) => {
      const info = targetInfoOf(targetInfo);
      if (info) this.#created(info);
    });
    cdp.on("Target.targetInfoChanged", ({ targetInfo }) => {
      const info = targetInfoOf(targetInfo);
      if (info) this.#changed(info);
    });
    cdp.on("Target.targetDestroyed", ({ targetId }) => this.#destroyed(String(targetId)));
  }

  /** The page that has been open longest. */
  oldest(): string | undefined {
    return this.#open.values().next().value;
  }

  /** The site that was opened last since the last `forgetOrigin`, such as `https://example.org`. */
  get lastOrigin(): string | undefined {
    return this.#lastOrigin;
  }

  forgetOrigin(): void {
    this.#lastOrigin = undefined;
  }

  /** After this call the browser may be without a page. */
  release(): void {
    this.#isKept = false;
  }

  #created({ targetId, type, browserContextId }: TargetInfo): void {
    if (type !== "page") return;
    this.#context ??= browserContextId;
    if (browserContextId !== this.#context) return;
    this.#open.add(targetId);
    this.#arrived(targetId);
  }

  #changed({ targetId, url }: TargetInfo): void {
    if (this.#open.has(targetId) && /^https?:/.test(url) && URL.canParse(url))
      this.#lastOrigin = new URL(url).origin;
  }

  #destroyed(page: string): void {
    if (!this.#open.delete(page) || this.#open.size > 0 || !this.#isKept) return;
    this.#openBlank().catch((error: unknown) =>
      this.log.warn({ error: textOf(error) }, "blank page not opened"),
    );
  }

  async #openBlank(): Promise<void> {
    const { targetId } = await this.cdp.send("Target.createTarget", { url: "about:blank" });
    await placeWindow(this.cdp, targetId, this.spec);
  }
}
