import type { TargetInfo } from "../../browser/cdp/target-event.js";

/** Which pages reach each other by scripts: one has opened the other, and either has a hold on it. */
export class OpenerGroups {
  /** The page that has opened each; undefined: none, or one that it has no hold on. */
  readonly #openers = new Map<string, string | undefined>();

  created({ targetId, type, openerId, canAccessOpener }: TargetInfo): void {
    if (type === "page") this.#openers.set(targetId, canAccessOpener === false ? undefined : openerId);
  }

  /** What it has opened stays together: pages of one group find each other by their names, too. */
  gone(page: string): void {
    this.#openers.delete(page);
  }

  /** Whether it is a page, and no frame or worker. */
  has(target: string): boolean {
    return this.#openers.has(target);
  }

  /** Whether a page is one of those, or reaches one, by way of any others. */
  reaches(page: string, isWanted: (page: string) => boolean): boolean {
    const group = new Set([page]);
    // What is added meanwhile is looked at, too.
    for (const at of group) {
      if (isWanted(at)) return true;
      for (const other of this.#besides(at)) group.add(other);
    }
    return false;
  }

  /** What has opened a page, and what it has opened. */
  #besides(page: string): readonly string[] {
    const opener = this.#openers.get(page);
    const opened = [...this.#openers].filter(([, by]) => by === page).map(([target]) => target);
    return opener === undefined ? opened : [opener, ...opened];
  }
}
