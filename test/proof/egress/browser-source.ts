import type { Engine } from "../../../src/browser/chromium.js";
import type { World } from "../../support/egress/egress-world.js";
import type { SecureSite } from "../../support/egress/egress-secure-site.js";
import type { AllowedSite } from "../../support/egress/egress-site.js";

/** A browser, and what its client can do to it. */
export interface ClientAccess {
  readonly cdpUrl: string;
  /** Absent where it speaks no WebDriver BiDi. */
  readonly bidiUrl?: string;
  /**
   * A new directory of its session where a client's files can lie; absent where there is none.
   */
  upload?(files: Readonly<Record<string, string>>): Promise<string>;
  /**
   * Gives the browser an extension of these files as its holder may; false where that is refused. Absent:
   * over CDP alone.
   */
  extend?(files: Readonly<Record<string, string>>): Promise<boolean>;
  /** Has the rules of its session be those of the beginning and these hosts. Absent: it has no rules. */
  permit?(hosts: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

/**
 * What a browser may reach: `listed`, the allowed site and the zone `inside.test`; `opened`, everything
 * public and all of loopback. `proxied` is `listed`, and for a browser without a guard it is a proxy that
 * leads nowhere.
 */
export type Reach = "listed" | "proxied" | "opened";

/** Opens browsers of one kind. */
export interface BrowserSource {
  readonly engine: Engine;
  readonly hasUploads: boolean;
  readonly hasOwnPorts: boolean;
  readonly hasBidi: boolean;
  open(reach: Reach): Promise<ClientAccess>;
  /** Ports of Remuda itself that listen now. */
  ownPorts(): Promise<readonly number[]>;
  close(): Promise<void>;
}

export interface TestNetwork {
  readonly world: World;
  readonly site: AllowedSite;
  readonly secure: SecureSite;
}

export const allowedZone = "inside.test";
export const deniedZone = "outside.test";
