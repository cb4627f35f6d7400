import { within } from "../../base/deadline.js";
import { type LeaseId, partitionOf } from "../../base/ids.js";
import { textOf } from "../../base/log.js";
import { isStoreAway } from "../../base/store-fault.js";
import type { GatewayPorts, Registration, RegistrationReply } from "../../gateway/ports.js";
import type { Standstill } from "../../gateway/standstill.js";
import type { Journal } from "../../node/journal/journal.js";
import type { Recovery } from "../../node/journal/recovery.js";
import type { LeaseCommands } from "../../node/lease-commands.js";
import type { EpochRegistration, LeaseHandover } from "../../node/lease-handover.js";
import type { Slot } from "../../node/slot.js";
import type { Slots } from "../../node/slots.js";
import type { NodeReports } from "../../pool/ports/node-reports.js";
import { findLeaseEnd } from "../gateway.js";
import type { DaemonParts } from "../parts.js";

interface RegistrationParts {
  readonly slots: Pick<Slots, "find">;
  readonly leaseCommands: Pick<LeaseCommands, "start">;
  readonly handover: Pick<LeaseHandover, "begin" | "noteCut">;
  readonly registration: Pick<EpochRegistration, "register">;
  readonly standstill: Pick<Standstill, "doubt">;
  readonly journal: Pick<Journal, "note">;
  readonly recovery: Pick<Recovery, "check">;
}

type Registered = Awaited<ReturnType<NodeReports["connect"]>>;

/** Registers clients and requests in Redis before they touch their browser. */
export function makeRegister(shared: DaemonParts, parts: RegistrationParts): GatewayPorts["connect"] {
  const registrar = new Registrar(shared, parts);
  return (visiting) => registrar.register(visiting);
}

class Registrar {
  constructor(
    private readonly shared: Pick<DaemonParts, "clock" | "config" | "log" | "stores">,
    private readonly parts: RegistrationParts,
  ) {}

  /**
   * Where Redis does not answer, a lease under which it has let somebody in here is good for further ones:
   * what ends it is told without Redis too, and a node that is alone for long ends its browsers
   * (redis-contact.ts). Each one's token was checked before, which takes no Redis.
   */
  async register(visiting: Registration): Promise<RegistrationReply> {
    const { browser, lease } = visiting;
    const asking = this.#ask(visiting);
    const slot = this.parts.slots.find(browser);
    if (!slot?.activity.wasOpened(lease)) return await this.#settle(visiting, await asking);
    const registered = await this.#answered(asking);
    if (registered) return await this.#settle(visiting, registered);
    void asking.then(
      (late) => (late.kind === "over" ? this.#cutLate(slot, lease, late.why) : undefined),
      () => {},
    );
    return await this.#admitAlone(slot, lease);
  }

  /** Redis may have forgotten whom this node has let in, or all, and have to be told again. */
  async #ask({ browser, lease }: Registration): Promise<Registered> {
    const { reports } = this.shared.stores;
    const { slots, journal, recovery, registration } = this.parts;
    const partition = partitionOf(browser);
    const registered = await reports.connect(browser, lease);
    const slot = slots.find(browser);
    const isMissing = registered.kind === "over" && registered.why === "gone";
    const isForgotten = registered.kind === "over" && slot?.activity.wasOpened(lease);
    if (!slot || !(isMissing || isForgotten)) {
      journal.note(partition);
      return registered;
    }
    await (isMissing ? recovery.check() : registration.register(partition));
    return await reports.connect(browser, lease);
  }

  /** Undefined where Redis cannot be asked. */
  async #answered(asking: Promise<Registered>): Promise<Registered | undefined> {
    const { clock, config } = this.shared;
    const limit = { what: "registration under a known lease", limitMs: config.redis.commandTimeoutMs };
    try {
      return await within(clock, limit, asking);
    } catch (error) {
      // A node that stood still may have been taken for lost: only Redis knows.
      if (!isStoreAway(error) || this.parts.standstill.doubt) throw error;
      return undefined;
    }
  }

  async #admitAlone(slot: Slot, lease: LeaseId): Promise<RegistrationReply> {
    if (slot.isEnding || !(await this.parts.handover.begin(slot, lease)))
      return { kind: "gone", reason: slot.activity.whyOver(lease) ?? "the browser is over" };
    this.shared.log.info({ browser: slot.id, lease }, "client admitted without Redis");
    return { kind: "connected" };
  }

  /** Redis has answered after all: the lease under which somebody was let in meanwhile is over. */
  async #cutLate(slot: Slot, lease: LeaseId, why: string): Promise<void> {
    this.parts.handover.noteCut(slot, lease);
    await slot.activity.cutLease(lease, why).catch((error: unknown) => {
      this.shared.log.warn({ browser: slot.id, lease, error: textOf(error) }, "clients not cut");
    });
  }

  /**
   * Clients of an earlier lease are cut first; the first client of a lease waits for the dispatch of its
   * start page. Each waits until what its lease captures is in force.
   */
  async #settle({ browser, lease }: Registration, registered: Registered): Promise<RegistrationReply> {
    const { slots, handover, leaseCommands } = this.parts;
    const findEnd = findLeaseEnd(this.shared.stores);
    if (registered.kind === "over")
      return { kind: "gone", reason: (await findEnd(browser, lease)) ?? registered.why };
    const slot = slots.find(browser);
    if (!slot) return { kind: "gone", reason: "the browser is over" };
    if (!(await handover.begin(slot, lease)))
      return { kind: "gone", reason: (await findEnd(browser, lease)) ?? "superseded" };
    slot.record = registered.browser;
    const { startUrl, registrations } = registered.browser.lease;
    const inForce = slot.captures(lease, registered.browser.lease);
    if (startUrl === undefined || registrations > 1) return { kind: "connected", inForce };
    return { kind: "connected", inForce, ready: leaseCommands.start(slot, lease, startUrl) };
  }
}
