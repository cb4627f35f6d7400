import { LRUCache } from "lru-cache";
import type { Millis } from "../base/clock.js";
import { RemudaError } from "../base/errors.js";
import type { BrowserId, ClaimId, LeaseId, RequestId } from "../base/ids.js";
import { type Log, textOf } from "../base/log.js";
import type { PoolStore, Job } from "../pool/ports/pool-store.js";
import type { NodeReports } from "../pool/ports/node-reports.js";
import type { NodeMessage, NodeRequest } from "../pool/ports/messages.js";
import type { ArmedPasskeys } from "./armed-passkeys.js";
import type { ChangeSession } from "./change-session.js";
import type { NetworkSync } from "./network-sync.js";
import { succeeded, failed, type CommandResult } from "../gateway/relay/command-result.js";
import type { Slot } from "./slot.js";
import type { Slots } from "./slots.js";
import type { LeaseHandover } from "./lease-handover.js";
import type { ExtensionUploads } from "./extension-uploads.js";
import type { PageFills } from "./page-fills.js";
import { runAsVisitor } from "./exclusive.js";

type AskMessage = Extract<NodeMessage, { kind: "ask" }>;

export interface LeaseCommandPorts {
  readonly slots: Slots;
  readonly poolStore: PoolStore;
  readonly reports: NodeReports;
  readonly log: Log;
  readonly networkSync: NetworkSync;
  readonly handover: LeaseHandover;
  readonly uploads: ExtensionUploads;
  readonly changeSession: ChangeSession;
  readonly pageFills: PageFills;
  readonly passkeys: ArmedPasskeys;
  readonly resetLimitMs: Millis;
  answer(message: AskMessage, commandResult: CommandResult): Promise<void>;
}

/** The reset after this lease, by the claim of the job that came last for it. */
interface Reset {
  readonly fence: LeaseId;
  claim: ClaimId;
}

/**
 * What a node does for a lease between its grant and its end: start page, questions, the fence, the reset.
 */
export class LeaseCommands {
  readonly #commandResults = new LRUCache<RequestId, Promise<CommandResult>>({ max: 1000 });
  readonly #resets = new Map<BrowserId, { readonly reset: Reset; readonly work: Promise<void> }>();

  constructor(private readonly ports: LeaseCommandPorts) {}

  /** A message is a hint: one that comes late or twice changes nothing. */
  receive(message: NodeMessage): void {
    const slot = this.ports.slots.find(message.browser);
    if (!slot) return;
    const onFault = (error: unknown): void =>
      this.ports.log.warn(
        { browser: slot.id, kind: message.kind, error: textOf(error) },
        "message not carried out",
      );
    void this.#act(slot, message).catch(onFault);
  }

  /** The same for what comes without Redis; undefined where there is no such browser here. */
  async receiveDirectly(message: NodeMessage): Promise<CommandResult | undefined> {
    const slot = this.ports.slots.find(message.browser);
    if (!slot) return undefined;
    if (message.kind === "ask") return await this.#outcomeOf(slot, message);
    // The browser is over, and whoever ends it may not know yet: from now on nothing leaves it.
    if (message.kind === "cut") await slot.egress.close();
    await this.#act(slot, message);
    return succeeded;
  }

  async #act(slot: Slot, message: NodeMessage): Promise<void> {
    switch (message.kind) {
      case "cut":
        this.ports.handover.noteCut(slot, message.lease);
        return await slot.activity.cutLease(message.lease, message.why);
      case "start":
        return await this.#start(slot, message);
      case "ask":
        return await this.ports.answer(message, await this.#outcomeOf(slot, message));
      case "fence":
        return await this.#fence(slot, message);
    }
  }

  async #start(
    slot: Slot,
    { lease, url, telemetry, trace }: Extract<NodeMessage, { kind: "start" }>,
  ): Promise<void> {
    if (!(await this.ports.handover.begin(slot, lease))) return;
    void slot.captures(lease, { telemetry, trace });
    if (url !== undefined) await this.start(slot, lease, url);
  }

  /**
   * The acquire's start page, once per lease that has begun; dropped where the lease has ended or a client is
   * there already.
   */
  start(slot: Slot, lease: LeaseId, url: string): Promise<void> {
    if (slot.started?.lease === lease) return slot.started.dispatched;
    if (slot.activity.isOver(lease) || slot.activity.registrations > 0) return Promise.resolve();
    const dispatched = runAsVisitor(slot, lease, async (signal) => {
      await slot.telemetry.inForce;
      await navigate(slot, url, signal);
    }).then(
      () => {},
      (error: unknown) => {
        this.ports.log.debug({ browser: slot.id, error: textOf(error) }, "start page not dispatched");
      },
    );
    slot.started = { lease, dispatched };
    return dispatched;
  }

  /** A question that comes both ways is carried out once. One that changes nothing is not remembered. */
  #outcomeOf(slot: Slot, message: AskMessage): Promise<CommandResult> {
    const { question } = message;
    if (message.what.kind === "recording") return this.#find(slot, message);
    const commandResult = this.#commandResults.get(question) ?? this.#find(slot, message);
    this.#commandResults.set(question, commandResult);
    // Where it cannot be known whether it is carried out, it may be asked again.
    commandResult.catch(() => this.#commandResults.delete(question));
    return commandResult;
  }

  async #find(slot: Slot, { lease, what }: AskMessage): Promise<CommandResult> {
    if (!(await this.ports.handover.begin(slot, lease))) return failed();
    // Where it cannot be known whether the change is in force, no answer is sent, which tells the caller so.
    if (what.kind === "network") return (await this.#changeNetwork(slot, lease, what)) ? succeeded : failed();
    return await this.#carryOut(slot, lease, what).catch((error: unknown) => {
      this.ports.log.info(
        { browser: slot.id, what: what.kind, error: textOf(error) },
        "question refused by the browser",
      );
      // Where a value of a vault does not open, that is no fault of the browser.
      const isOfVault = what.kind === "fill" || what.kind === "passkey";
      return isOfVault && error instanceof RemudaError ? failed(error.message, error.code) : failed();
    });
  }

  #changeNetwork(
    slot: Slot,
    lease: LeaseId,
    { revision, change }: Extract<NodeRequest, { kind: "network" }>,
  ): Promise<boolean> {
    return this.ports.networkSync.sync(
      slot,
      revision,
      change && { lease, change, isWanted: () => !slot.activity.isOver(lease) },
    );
  }

  async #carryOut(
    slot: Slot,
    lease: LeaseId,
    what: Exclude<NodeRequest, { kind: "network" }>,
  ): Promise<CommandResult> {
    switch (what.kind) {
      case "extensions":
        return await this.ports.uploads.add(slot, lease, what.items);
      case "navigate":
        return await this.#navigate(slot, lease, what.url);
      case "recording":
        return { isDone: true, payload: JSON.stringify(slot.flight.recording("requested", { lease })) };
      case "telemetry":
        await slot.captures(lease, { telemetry: what.telemetry, telemetryRevision: what.revision });
        return succeeded;
      case "change":
        return await this.ports.changeSession.change(slot, lease, what);
      case "fill":
        return await this.ports.pageFills.fill(slot, lease, what.sealed);
      case "passkey":
        return await this.ports.passkeys.change(slot, lease, what.sealed);
    }
  }

  async #navigate(slot: Slot, lease: LeaseId, url: string): Promise<CommandResult> {
    // A page that a client opens replaces the acquire's own start page, which is no longer wanted.
    slot.started = { lease, dispatched: Promise.resolve() };
    const commandResult = await runAsVisitor(slot, lease, async (signal, visit) => {
      if (!visit.confirm()) return undefined;
      await navigate(slot, url, signal);
      return succeeded;
    });
    return commandResult ?? failed();
  }

  /** Cuts the lease and restores the pool's baseline; without a reset the browser is then free. */
  async #fence(
    slot: Slot,
    { lease, claim, mode }: { lease: LeaseId; claim: ClaimId; mode: "none" | "state" },
  ): Promise<void> {
    if (mode === "state") this.ports.handover.noteCut(slot, lease);
    const isFenced = await this.#cut(slot, lease);
    if (isFenced && mode === "none") await this.ports.reports.freed(slot.id, claim);
  }

  async #cut(slot: Slot, lease: LeaseId): Promise<boolean> {
    try {
      await slot.activity.cutLease(lease, "released");
      // A message that comes late must not change what the next holder has.
      await slot.inTurn(async () => {
        if (slot.activity.lease === undefined) await slot.restoreViewport();
      });
      await this.ports.networkSync.restore(slot);
      return true;
    } catch (error) {
      await this.ports.slots.retireNow(slot, "reset_failed", textOf(error));
      return false;
    }
  }

  /**
   * A reset job: fence, clear, compare with the fingerprint of the launch; any difference retires the
   * browser. One that comes again while the browser is being reset is served by that reset: two of them would
   * close each other's pages. One after another lease waits for that, and has a reset of its own.
   */
  async reset({ browser: id, claim }: Pick<Job, "browser" | "claim">): Promise<void> {
    const slot = this.ports.slots.find(id);
    const record = (await this.ports.poolStore.findBrowser(id))?.browser;
    if (!slot || record?.state !== "resetting" || record.claim !== claim) return;
    const { fence } = record;
    const underWay = this.#resets.get(id);
    if (underWay?.reset.fence === fence) {
      underWay.reset.claim = claim;
    } else if (underWay) {
      await underWay.work.catch(() => {});
      await this.reset({ browser: id, claim });
    } else {
      const reset = { fence, claim };
      const work = this.#reset(slot, reset);
      this.#resets.set(id, { reset, work });
      await work;
    }
  }

  async #reset(slot: Slot, reset: Reset): Promise<void> {
    try {
      if (!(await this.#clear(slot, reset.fence))) return;
      let freedBy: ClaimId | undefined;
      while (freedBy !== reset.claim) {
        freedBy = reset.claim;
        await this.ports.reports.freed(slot.id, freedBy);
      }
    } finally {
      this.#resets.delete(slot.id);
    }
  }

  /** Whether it is as it was launched; else it is retired. */
  async #clear(slot: Slot, fence: LeaseId): Promise<boolean> {
    this.ports.handover.noteCut(slot, fence);
    if (!(await this.#cut(slot, fence))) return false;
    try {
      const { differences } = await slot.chromium.reset(this.ports.resetLimitMs, () => slot.egress.hold());
      if (differences.length > 0) {
        await this.ports.slots.retireNow(slot, "not_clean", differences.join("; "));
        return false;
      }
    } catch (error) {
      await this.ports.slots.retireNow(slot, "reset_failed", textOf(error));
      return false;
    }
    slot.flight.state("reset");
    if (slot.unknownLease === fence) slot.unknownLease = undefined;
    return true;
  }
}

/** Where a restart is under way, this navigates the Chromium that comes after it. */
async function navigate(slot: Slot, url: string, signal: AbortSignal): Promise<void> {
  await slot.restarting;
  signal.throwIfAborted();
  await slot.chromium.navigate(url);
}
