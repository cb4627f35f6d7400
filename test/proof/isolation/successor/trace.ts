import type { RawCdp } from "../../../support/gateway/raw-cdp.js";
import type { Page } from "../../egress/corpus/page.js";
import type { Never } from "../corpus/attempt.js";
import type { RememberingSite } from "./site.js";

/** One holder of a browser of a pool, and what is in its hands. */
export interface Holder {
  /** The nonce of the run, which is the name of what the first holder leaves. */
  readonly nonce: string;
  readonly site: RememberingSite;
  readonly cdp: RawCdp;
  /** The root of the browser that the holder was lent. */
  readonly root: string;
  /** Opens a page of the site; it stays open. */
  open(path?: string): Promise<Page>;
  /** Runs a script in a page of the site, which is closed then. */
  evaluate(script: string): Promise<unknown>;
  /** Gives the browser an extension, where it takes any. */
  extend(files: Readonly<Record<string, string>>): Promise<unknown>;
}

/** Something that one holder leaves and the next may find. */
export interface Trace {
  readonly name: string;
  readonly needsChromium?: true;
  /** `state` replaces a browser that has it, so that nothing else would be tried there. */
  readonly isReplaced?: true;
  leave(holder: Holder): Promise<unknown>;
  /** Truthy where it is there. */
  find(holder: Holder): Promise<unknown>;
  /** Is it there for the next holder where nothing is reset? */
  readonly succeedsPlain: true | Never;
  /** `reset_on_release` `state` leaves it, and docs/api.md says so. */
  readonly isAdmitted?: string;
}

/** Scripts of a page of the site; `find` returns something truthy. */
export const inPage = (name: string, leave: string, find: string): Trace => ({
  name,
  succeedsPlain: true,
  leave: (holder) => holder.evaluate(leave),
  find: (holder) => holder.evaluate(`return ${find}`),
});

/** A command for a page of one's own, which is left open, and what a page of the next holder shows of it. */
export const ofSession = (
  name: string,
  [method, params]: readonly [string, object],
  find: string,
): Trace => ({
  name,
  succeedsPlain: { because: "what a CDP session has set goes with its client" },
  async leave({ open }) {
    const page = await open();
    await page.command(`${method.split(".")[0]}.enable`);
    await page.command(method, params);
  },
  find: (holder) => holder.evaluate(`return ${find}`),
});
