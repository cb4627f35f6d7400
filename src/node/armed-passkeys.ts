import { setMaxListeners } from "node:events";
import { type Clock, type Millis, pause } from "../base/clock.js";
import type { Seal } from "../base/crypto/seal.js";
import { type Done, type Refusal, RemudaError } from "../base/errors.js";
import type { LeaseId } from "../base/ids.js";
import { type Log, textOf } from "../base/log.js";
import { isStoreAway } from "../base/store-fault.js";
import type { PasskeyCredential } from "../browser/passkeys/page-authenticators.js";
import { failed, succeeded, type CommandResult } from "../gateway/relay/command-result.js";
import { fillOwner } from "../spec/page-fill.js";
import { runExclusively } from "./exclusive.js";
import type { Slot } from "./slot.js";

/** What a browser is to have from now on; without a passkey it has none, or the first that a page makes. */
export interface PasskeyChange {
  /** Names whose passkey it is: nobody takes another's from the browser. */
  readonly owner: string;
  readonly credential?: PasskeyCredential;
  readonly isRegistering?: boolean;
  readonly forMs: Millis;
}

interface PasskeyPorts {
  readonly seal: Pick<Seal, "open">;
  readonly clock: Clock;
  readonly log: Log;
  /** Opens the passkey that an order names. */
  openPasskey(order: string): Promise<Done<PasskeyChange> | Refusal>;
  /** Refused where the order comes too late by now. */
  refuseLate(order: string): Promise<Refusal | undefined>;
  /** Keeps what a page has made in the item that the order names. */
  keepPasskey(order: string, made: PasskeyCredential): Promise<Done<null> | Refusal>;
}

/** What a page has made, the order by which it is to be kept, and until when (monotonic) that is tried. */
interface MadePasskey {
  readonly order: string;
  readonly made: PasskeyCredential;
  readonly until: Millis;
}

const keepAgainMs: Millis = 1000;

interface Armed {
  readonly owner: string;
  disarm(): Promise<void>;
}

/**
 * Passkeys of vaults in browsers of this node: one in each at most, for a time, and never longer than the
 * lease or the Chromium that it was given for.
 */
export class ArmedPasskeys {
  readonly #armed = new WeakMap<Slot, Armed>();
  readonly #keeping = new Set<Promise<void>>();
  readonly #closing = new AbortController();

  constructor(private readonly ports: PasskeyPorts) {
    // Node.js warns of more than 10.
    setMaxListeners(0, this.#closing.signal);
  }

  /** `sealed`: an order that was sealed for this lease. */
  async change(slot: Slot, lease: LeaseId, sealed: string): Promise<CommandResult> {
    const order = this.ports.seal.open(sealed, fillOwner(slot.id, lease));
    if (order.kind !== "opened")
      return failed("The order was sealed with another key, or for another lease", "secret_unreadable");
    const text = order.text.reveal();
    const opened = await this.ports.openPasskey(text);
    if (opened.kind === "refused") return failed(opened.message, opened.code);
    const { forMs } = opened.value;
    const added = (made: PasskeyCredential): void => this.#added(slot, { order: text, made, forMs });
    return await runExclusively(slot, lease, async () => {
      // It may have waited for its turn, behind a restart.
      const late = await this.ports.refuseLate(text);
      if (late) return failed(late.message, late.code);
      return await this.#change(slot, lease, { ...opened.value, added });
    });
  }

  /** What is not kept yet is tried once more. No browser has a passkey any more by now. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#keeping);
  }

  #added(slot: Slot, { forMs, ...made }: Omit<MadePasskey, "until"> & { readonly forMs: Millis }): void {
    const until = this.ports.clock.monotonic() + forMs;
    const keeping = this.#keep(slot, { ...made, until }).finally(() => this.#keeping.delete(keeping));
    this.#keeping.add(keeping);
  }

  /** Nobody but the browser has it: a Redis that is away is waited for. */
  async #keep(slot: Slot, { order, made, until }: MadePasskey): Promise<void> {
    const { clock, log, keepPasskey } = this.ports;
    const { signal } = this.#closing;
    try {
      const { kind } = await keepPasskey(order, made);
      if (kind === "refused") log.warn({ browser: slot.id }, "passkey of a page not kept");
      return;
    } catch (error) {
      const said = { browser: slot.id, error: textOf(error) };
      if (!mayComeBack(error) || clock.monotonic() >= until || signal.aborted)
        return log.error(said, "passkey of a page not kept");
      log.info(said, "passkey of a page not kept yet");
    }
    await pause(clock, keepAgainMs, signal);
    await this.#keep(slot, { order, made, until });
  }

  async #change(
    slot: Slot,
    lease: LeaseId,
    change: PasskeyChange & { added(made: PasskeyCredential): void },
  ): Promise<CommandResult> {
    const isDisarming = !change.credential && !change.isRegistering;
    const present = this.#armed.get(slot);
    if (present && present.owner !== change.owner)
      return isDisarming ? succeeded : failed("The browser has another passkey", "conflict");
    await present?.disarm();
    return isDisarming ? succeeded : await this.#arm(slot, lease, change);
  }

  async #arm(
    slot: Slot,
    lease: LeaseId,
    { owner, credential, forMs, added }: PasskeyChange & { added(made: PasskeyCredential): void },
  ): Promise<CommandResult> {
    const { bridge, chromium } = slot;
    let end = async (): Promise<void> => {};
    let ended: Promise<void> | undefined;
    const disarm = (): Promise<void> => (ended ??= end());
    const visit = slot.activity.enter(lease, { cut: disarm, interrupt: disarm, isPassive: true });
    if (!visit) return failed("The lease is over", "browser_gone");
    let arming: Promise<() => Promise<void>> | undefined;
    const cancel = this.ports.clock.after(forMs, () => void disarm());
    end = async () => {
      cancel();
      // It may end while its pages are being given it: then it is taken from them once they have it.
      const take = await arming?.catch(() => {});
      await take?.();
      bridge.filled.isArmed = false;
      this.#armed.delete(slot);
      visit.end();
    };
    this.#armed.set(slot, { owner, disarm });
    // Nobody may add an authenticator of its own beside it, nor read the key.
    bridge.filled.isArmed = true;
    try {
      arming = chromium.armPasskey(credential, { added, usedUp: () => void disarm() });
      await arming;
      return succeeded;
    } catch (error) {
      this.ports.log.info({ browser: slot.id, lease, error: textOf(error) }, "passkey not armed");
      await disarm();
      return failed("A page of the browser can not be given the passkey", "conflict");
    }
  }
}

/** Whether Redis, or who keeps the vaults' keys, does not answer just now. */
const mayComeBack = (error: unknown): boolean =>
  isStoreAway(error) || (error instanceof RemudaError && error.code === "unavailable");
