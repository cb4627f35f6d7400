import type { Millis } from "../base/clock.js";
import type { ClaimId, LeaseId } from "../base/ids.js";
import { type Log, textOf } from "../base/log.js";
import type { Homes, Job, NodeMessage, NodeQuestion, NodeReports } from "../pool/ports.js";
import type { Networks } from "./networks.js";
import type { Slot, Slots } from "./slots.js";

export interface FencePorts {
  readonly slots: Slots;
  readonly homes: Homes;
  readonly reports: NodeReports;
  readonly log: Log;
  readonly networks: Networks;
  readonly resetLimitMs: Millis;
  answer(message: Extract<NodeMessage, { kind: "ask" }>, ok: boolean): Promise<void>;
}

/** What a node does for a lease between its grant and its end: start page, questions, the fence, the reset. */
export class Fence {
  constructor(private readonly ports: FencePorts) {}

  /** A message is a hint: one that comes late or twice changes nothing. */
  hear(message: NodeMessage): void {
    const slot = this.ports.slots.find(message.browser);
    if (!slot) return;
    const failed = (error: unknown): void => this.ports.log.warn({ browser: slot.id, kind: message.kind, error: textOf(error) }, "message not carried out");
    void this.#act(slot, message).catch(failed);
  }

  async #act(slot: Slot, message: NodeMessage): Promise<void> {
    switch (message.kind) {
      case "cut": return await slot.activity.cutLease(message.lease, message.why);
      case "start": return await this.start(slot, message.lease, message.url);
      case "ask": return await this.#ask(slot, message);
      case "fence": return await this.#fence(slot, message);
    }
  }

  /** The acquire's start page, once per lease; dropped where the lease has ended or a client is there already. */
  start(slot: Slot, lease: LeaseId, url: string): Promise<void> {
    if (slot.started?.lease === lease) return slot.started.dispatched;
    if (slot.activity.isOver(lease)) return Promise.resolve();
    slot.activity.begin(lease);
    if (slot.activity.registrations > 0) return Promise.resolve();
    const dispatched = slot.chromium.navigate(url).catch((error: unknown) => {
      this.ports.log.debug({ browser: slot.id, error: textOf(error) }, "start page not dispatched");
    });
    slot.started = { lease, dispatched };
    return dispatched;
  }

  async #ask(slot: Slot, message: Extract<NodeMessage, { kind: "ask" }>): Promise<void> {
    if (slot.activity.isOver(message.lease)) return await this.ports.answer(message, false);
    // Where it cannot be known whether the change is in force, no answer is one: the caller is told that the way out is closed.
    if (message.what.kind === "network") return await this.ports.answer(message, await this.ports.networks.sync(slot, message.what.revision));
    const isDone = await this.#carryOut(slot, message.lease, message.what).then(
      () => true,
      (error: unknown) => {
        this.ports.log.info({ browser: slot.id, what: message.what.kind, error: textOf(error) }, "question refused by the browser");
        return false;
      },
    );
    await this.ports.answer(message, isDone);
  }

  async #carryOut(slot: Slot, lease: LeaseId, what: Exclude<NodeQuestion, { kind: "network" }>): Promise<void> {
    if (what.kind === "navigate") {
      // From now on the acquire's own start page is no longer wanted.
      slot.started = { lease, dispatched: Promise.resolve() };
      return await slot.chromium.navigate(what.url);
    }
    if (what.kind !== "resize") throw new Error(`${what.kind} is not built yet`);
    slot.isResized = true;
    await slot.chromium.resize({ width: what.width, height: what.height });
  }

  /** Cuts the lease and restores the pool's baseline; without a reset the browser is then free. */
  async #fence(slot: Slot, { lease, claim, mode }: { lease: LeaseId; claim: ClaimId; mode: "none" | "state" }): Promise<void> {
    const isFenced = await this.#cut(slot, lease);
    if (isFenced && mode === "none") await this.ports.reports.freed(slot.id, claim);
  }

  async #cut(slot: Slot, lease: LeaseId): Promise<boolean> {
    try {
      await slot.activity.cutLease(lease, "the lease has ended");
      if (slot.isResized) await slot.chromium.resize(slot.config.viewport);
      slot.isResized = false;
      await this.ports.networks.restore(slot);
      return true;
    } catch (error) {
      await this.ports.slots.retireNow(slot, "reset_failed", textOf(error));
      return false;
    }
  }

  /** A reset job: fence, clear, compare with the fingerprint of the launch; any difference retires the browser. */
  async reset({ browser: id, claim }: Pick<Job, "browser" | "claim">): Promise<void> {
    const slot = this.ports.slots.find(id);
    const record = (await this.ports.homes.findBrowser(id))?.browser;
    if (!slot || record?.state !== "resetting" || record.claim !== claim) return;
    if (record.fence && !(await this.#cut(slot, record.fence))) return;
    try {
      const { differences } = await slot.chromium.reset(this.ports.resetLimitMs);
      if (differences.length > 0) return await this.ports.slots.retireNow(slot, "not_clean", differences.join("; "));
    } catch (error) {
      return await this.ports.slots.retireNow(slot, "reset_failed", textOf(error));
    }
    await this.ports.reports.freed(id, claim);
  }
}
