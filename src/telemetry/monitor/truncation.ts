import { cutText } from "../truncate.js";

/** Shortens what goes into one event, and remembers whether something was left out. */
export class Truncation {
  #wasCut = false;

  get wasCut(): boolean {
    return this.#wasCut;
  }

  /** Something was left out before it came here. */
  add(): void {
    this.#wasCut = true;
  }

  /** At most so many bytes of UTF-8, which end in a marker where more is cut off. */
  text(text: string, mostBytes: number): string {
    // Each character is a byte at least.
    const shown = cutText(text.slice(0, mostBytes + 1), mostBytes);
    // With the marker it may be as long as it was.
    if (shown !== text) this.#wasCut = true;
    return shown;
  }

  optional(text: string | undefined, mostBytes: number): string | undefined {
    return text === undefined ? undefined : this.text(text, mostBytes);
  }

  /** An address without the password that it may have, also where another address stands around it. */
  url(url: string | undefined): string | undefined {
    return this.optional(url?.replace(userInformation, "$1"), longestUrlBytes);
  }

  /** The value of a header, without the passwords of addresses in it. */
  header(value: string, mostBytes: number): string {
    return this.text(value.replaceAll(userInformationWithin, "$1$2$3"), mostBytes);
  }

  list<Item>(items: readonly Item[], most: number): readonly Item[] {
    if (items.length > most) this.#wasCut = true;
    return items.slice(0, most);
  }
}

/** An address as it is told, and whether that is all of it. */
export interface ShownAddress {
  readonly url: string;
  readonly wasCut: boolean;
}

export function shownAddress(address: string | undefined): ShownAddress {
  const truncation = new Truncation();
  const url = truncation.url(address) ?? "";
  // As a part of the address it would keep all of that in memory, a long password too.
  return { url: Buffer.from(url).toString(), wasCut: truncation.wasCut };
}

const longestUrlBytes = 4096;
/** It stands in the address itself, or in one behind `view-source:`, `blob:` or `filesystem:`. */
const userInformation = /^((?:view-source:|blob:|filesystem:)?[a-z][a-z0-9+.-]*:\/\/)[^/?#]*@/i;
/**
 * It stands in an address that may have others beside it, as in `Link` or a policy's `report-uri`. Browsers
 * take a slash of either kind, or several, behind the schemes of the first line (WHATWG URL, 4.4); without a
 * scheme only what has a colon is a password. Each line reads from one slash to the next, so that a long
 * header costs no more than its length.
 */
const userInformationWithin = new RegExp(
  String.raw`(?:((?:https?|wss?|ftp):[/\\]+)[^/\\?#\s<>"]*` +
    String.raw`|([a-z\d+.-]:\/\/)[^/?#\s<>"]*` +
    String.raw`|(?<=^|[\s<>"'(=,;])(\/\/)[^/?#\s<>":]*:[^/?#\s<>"]*)@`,
  "gi",
);
