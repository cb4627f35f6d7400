import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { CollectionForms, Submission, Submitted } from "../vault/collection-form.js";

const digest = (...texts: readonly string[]): string =>
  createHash("sha256").update(JSON.stringify(texts)).digest("base64url");

/** What stands for a token wherever the token itself may not stand. */
export const linkDigest = (token: string): string => digest(token);

/** Some 100 bytes each. */
const mostRemembered = 10_000;

/**
 * Submits, and answers a repeat of the same bytes with what the first was answered: a page that has not heard
 * the answer sends again, when the link is used already. Remembered at this daemon and while it runs;
 * elsewhere such a repeat is told that the link was used.
 */
export class Repeats {
  readonly #known = new LRUCache<string, Promise<Submitted>>({ max: mostRemembered });

  constructor(private readonly forms: Pick<CollectionForms, "submit">) {}

  submit(token: string, { version, values }: Submission): Promise<Submitted> {
    const key = digest(token, String(version), JSON.stringify(values));
    const known = this.#known.get(key);
    if (known) return known;
    const submitted = this.forms.submit(token, { version, values });
    this.#known.set(key, submitted);
    const forget = (): void => void this.#known.delete(key);
    submitted.then(({ kind }) => kind === "done" || forget(), forget);
    return submitted;
  }
}
