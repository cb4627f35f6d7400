import type { Clock, Millis } from "../../base/clock.js";
import { isRecord } from "../../base/is-record.js";
import { type Log, textOf } from "../../base/log.js";
import { type Cdp, CdpRefused, ignoreRefusal } from "../cdp/cdp.js";

/** What Chromium is given of a passkey; what is binary is in base64. */
export interface PasskeyCredential {
  readonly credentialId: string;
  readonly rpId: string;
  /** PKCS #8, of P-256: a vault keeps no other (docs/vault.md). */
  readonly privateKey: string;
  readonly userHandle: string;
  readonly userName: string;
  readonly userDisplayName: string;
  /** The next assertion has one more. */
  readonly signCount: number;
}

/** What is told of a passkey that pages have. */
export interface PasskeyEvents {
  /** A page has made one, which all pages have from now on. Called once at most. */
  added?(credential: PasskeyCredential): void;
  /** Pages have made as many assertions as they may: it is to be taken from them. */
  usedUp?(): void;
}

interface PageAuthenticatorParts extends PasskeyEvents {
  readonly cdp: Cdp;
  readonly clock: Clock;
  readonly log: Log;
  /** Absent where a page is to make one. */
  readonly credential?: PasskeyCredential | undefined;
}

/** A page, and the authenticator that it has been given. */
interface ArmedPage {
  readonly session: string;
  authenticator: string;
}

const pagesOnly = [{ type: "page" }, { exclude: true }];
/**
 * How often it is looked whether each page still has what it was given. A page that asks in between waits for
 * what is no longer there, and Chromium with windows then answers it no more until it is loaded anew.
 */
const checkEveryMs: Millis = 50;
/**
 * Far below what is reserved when a vault's passkey is armed (vault/passkeys.ts): pages go on until it is
 * taken from them.
 */
const mostAssertions = 500;
/** Sites take a code of the user's for verified; nobody is there to touch a key. */
const options = {
  protocol: "ctap2",
  ctap2Version: "ctap2_1",
  transport: "internal",
  hasResidentKey: true,
  hasUserVerification: true,
  isUserVerified: true,
  automaticPresenceSimulation: true,
} as const;

/**
 * A passkey on every page of a browser, new ones and popups before their scripts run, by virtual
 * authenticators. Chromium 156 destroys those of a page whenever any session on that page ends, whoever had
 * it. So such ends are put off (late-detaches.ts); since some come all the same, the authenticators are
 * looked for again and again, and made anew.
 */
export class PageAuthenticators {
  readonly #pages = new Map<string, ArmedPage>();
  readonly #stops: (() => void)[] = [];
  #credential: PasskeyCredential | undefined;
  #root: string | undefined;
  #signCount: number;
  /** The counter that it was given or made with. */
  #firstCount: number;
  #isChecking = false;

  constructor(private readonly parts: PageAuthenticatorParts) {
    this.#credential = parts.credential;
    this.#signCount = this.#firstCount = parts.credential?.signCount ?? 0;
  }

  /** Resolves when each page that is open has it. Throws where one cannot; then none has. */
  async open(): Promise<void> {
    const { cdp, clock } = this.parts;
    const { sessionId: root } = await cdp.send("Target.attachToBrowserTarget", {});
    this.#root = root;
    const first: Promise<void>[] = [];
    const attached = ({ sessionId }: Readonly<Record<string, unknown>>): void => {
      const arming = this.#attached(String(sessionId));
      first.push(arming);
      // Nobody waits for those of pages that come later, and a rejection that nobody takes ends the daemon.
      arming.catch((error: unknown) => this.#failed(error));
    };
    this.#stops.push(
      cdp.on("Target.attachedToTarget", attached, root),
      cdp.on("Target.detachedFromTarget", ({ sessionId }) => this.#pages.delete(String(sessionId)), root),
    );
    const following = { autoAttach: true, waitForDebuggerOnStart: true, flatten: true, filter: pagesOnly };
    try {
      await cdp.send("Target.setAutoAttach", following, { session: root });
      await Promise.all(first);
    } catch (error) {
      await this.close();
      throw error;
    }
    this.#stops.push(clock.every(checkEveryMs, () => void this.#check()));
  }

  /** Takes it from every page; never throws. */
  async close(): Promise<void> {
    for (const stop of this.#stops.splice(0)) stop();
    this.#pages.clear();
    const sessionId = this.#root;
    this.#root = undefined;
    if (sessionId === undefined) return;
    // Those of the pages go with it, and Chromium forgets what they have made.
    await this.parts.cdp.send("Target.detachFromTarget", { sessionId }).catch(() => {});
  }

  /** The page runs its scripts once it has the passkey, and also where it cannot have it. */
  async #attached(session: string): Promise<void> {
    const { cdp } = this.parts;
    try {
      this.#stops.push(
        cdp.on(
          "WebAuthn.credentialAsserted",
          ({ credential }) => this.#asserted(session, credential),
          session,
        ),
        cdp.on("WebAuthn.credentialAdded", ({ credential }) => this.#added(session, credential), session),
      );
      this.#pages.set(session, { session, authenticator: await this.#arm(session) });
    } finally {
      cdp.send("Runtime.runIfWaitingForDebugger", {}, { session }).catch(() => {});
    }
  }

  #failed(error: unknown): void {
    // Chromium refuses where the page has closed meanwhile.
    if (error instanceof CdpRefused) return;
    this.parts.log.warn({ error: textOf(error) }, "passkey not given to a page");
  }

  async #arm(session: string): Promise<string> {
    const { cdp } = this.parts;
    // They are written at once: a page that asks in between is never answered.
    const enabling = cdp.send("WebAuthn.enable", { enableUI: false }, { session });
    const adding = cdp.send("WebAuthn.addVirtualAuthenticator", { options }, { session });
    const [{ authenticatorId }] = await Promise.all([adding, enabling]);
    await this.#give(session, authenticatorId);
    return authenticatorId;
  }

  async #give(session: string, authenticatorId: string): Promise<void> {
    if (!this.#credential) return;
    const credential = { ...this.#credential, isResidentCredential: true, signCount: this.#signCount };
    await this.parts.cdp.send("WebAuthn.addCredential", { authenticatorId, credential }, { session });
  }

  #added(from: string, found: unknown): void {
    if (this.#credential || !isRecord(found)) return;
    const [credentialId, rpId, privateKey, userHandle = "", userName = "", userDisplayName = ""] = [
      "credentialId",
      "rpId",
      "privateKey",
      "userHandle",
      "userName",
      "userDisplayName",
    ].map((name) => (typeof found[name] === "string" ? found[name] : undefined));
    if (!credentialId || !rpId || !privateKey) return;
    this.#signCount = this.#firstCount = Number(found["signCount"] ?? 0);
    const names = { userHandle, userName, userDisplayName };
    this.#credential = { credentialId, rpId, privateKey, ...names, signCount: this.#signCount };
    this.parts.added?.(this.#credential);
    for (const { session, authenticator } of this.#pages.values())
      if (session !== from) this.#give(session, authenticator).catch(() => {});
  }

  /** The other pages count on from there: a counter that goes back looks like a stolen key. */
  #asserted(from: string, credential: unknown): void {
    const count = isRecord(credential) ? credential["signCount"] : undefined;
    if (typeof count !== "number") return;
    this.#signCount = Math.max(this.#signCount, count);
    if (this.#signCount - this.#firstCount >= mostAssertions) return this.parts.usedUp?.();
    const credentialId = this.#credential?.credentialId ?? "";
    for (const { session, authenticator: authenticatorId } of this.#pages.values()) {
      if (session === from) continue;
      const old = { authenticatorId, credentialId };
      const removing = this.parts.cdp.send("WebAuthn.removeCredential", old, { session });
      Promise.all([removing, this.#give(session, authenticatorId)]).catch(() => {});
    }
  }

  async #check(): Promise<void> {
    if (this.#isChecking) return;
    this.#isChecking = true;
    await Promise.all([...this.#pages.values()].map((page) => this.#checkPage(page))).catch(
      (error: unknown) => this.parts.log.warn({ error: textOf(error) }, "passkey not given to a page again"),
    );
    this.#isChecking = false;
  }

  async #checkPage(page: ArmedPage): Promise<void> {
    const { session, authenticator: authenticatorId } = page;
    const credentialId = this.#credential?.credentialId;
    try {
      if (credentialId === undefined)
        await this.parts.cdp.send("WebAuthn.getCredentials", { authenticatorId }, { session });
      else
        await this.parts.cdp.send("WebAuthn.getCredential", { authenticatorId, credentialId }, { session });
    } catch (error) {
      if (!(error instanceof CdpRefused)) throw error;
      // What is left of it is in the way of another.
      const clearing = this.parts.cdp.send("WebAuthn.disable", {}, { session }).catch(ignoreRefusal);
      if (this.#pages.has(session)) page.authenticator = await this.#arm(session);
      await clearing;
    }
  }
}
