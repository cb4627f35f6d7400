import { groupBy } from "../base/group.js";
import type { Clock, Millis } from "../base/clock.js";
import { type Home, homeOf, type LeaseId, type NodeId } from "../base/ids.js";
import { type Log, textOf } from "../base/log.js";
import type { Browser } from "../pool/browser.js";
import type { Homes, NodeReports } from "../pool/ports.js";
import type { Networks } from "./networks.js";
import type { Slot } from "./slot.js";
import type { Slots } from "./slots.js";

export interface KeepingPorts {
  readonly node: NodeId;
  readonly slots: Slots;
  readonly homes: Homes;
  readonly reports: NodeReports;
  readonly networks: Networks;
  readonly clock: Clock;
  readonly log: Log;
  readonly expirePeriodMs: Millis;
  readonly probePeriodMs: Millis;
  readonly probeLimitMs: Millis;
}

/** A slot without a record is left alone so long: its record may be about to be read. */
const youngMs: Millis = 10_000;

/** Looks after the browsers of this node: ends inactive leases, probes idle browsers, ends those that no record knows. */
export function startKeeping(ports: KeepingPorts): { stop(): void } {
  const lastProbe = new WeakMap<Slot, Millis>();
  let isLooking = false;
  const look = async (): Promise<void> => {
    if (isLooking) return;
    isLooking = true;
    try {
      await ports.slots.tellUntold();
      const homes = groupBy(ports.slots.all(), (slot) => homeOf(slot.id));
      await Promise.all([...homes].map(([home, slots]) => keepHome(ports, lastProbe, { home, slots })));
    } catch (error) {
      ports.log.warn({ error: textOf(error) }, "browsers could not be looked after");
    } finally {
      isLooking = false;
    }
  };
  return { stop: ports.clock.every(ports.expirePeriodMs, () => void look()) };
}

async function keepHome(ports: KeepingPorts, lastProbe: WeakMap<Slot, Millis>, { home, slots }: { home: Home; slots: readonly Slot[] }): Promise<void> {
  const { browsers, at } = await ports.homes.browsersOf(home, ports.node);
  const records = new Map(browsers.map((browser) => [browser.id, browser]));
  await Promise.all(slots.map(async (slot) => {
    const record = records.get(slot.id);
    if (!record) return await endUnknown(ports, slot);
    if (record.state === "leased") return await keepLeased(ports, slot, { record, at });
    if (record.state === "idle") await probe(ports, lastProbe, slot);
  }));
}

/** Its record is gone: this node was taken for lost, or Redis has forgotten. Nobody may use it any more. */
async function endUnknown({ slots, homes, clock, log }: KeepingPorts, slot: Slot): Promise<void> {
  if (slot.isEnding || clock.monotonic() - slot.bornAtMs < youngMs) return;
  // Another release writes records without telling the index.
  if (await homes.findBrowser(slot.id)) return;
  log.warn({ browser: slot.id }, "browser without a record ended");
  await slots.end(slot);
}

async function keepLeased(ports: KeepingPorts, slot: Slot, { record, at }: { record: Browser; at: Millis }): Promise<void> {
  const { lease } = record;
  if (!lease) return;
  const { activity } = slot;
  const earlier = activity.lease;
  if (earlier && earlier !== lease.id) {
    if (await isHeldBy(ports, slot, earlier)) return;
    // A fence that never came: the old holder is cut now.
    await activity.cutLease(earlier, "the lease has ended");
    // By the record, for the new holder may have changed it already.
    await ports.networks.sync(slot);
  }
  activity.begin(lease.id, at - lease.grantedAt);
  const used = slot.using.untold(lease.id);
  if (used) await ports.reports.used(slot.id, used);
  const since = activity.inactiveSinceMs;
  if (since === undefined || activity.hasVisitors) return;
  if (ports.clock.monotonic() - since < lease.timeoutSeconds * 1000) return;
  const isExpired = await ports.reports.expire({ browser: slot.id, lease: lease.id, registrations: lease.registrations });
  if (isExpired) ports.log.info({ browser: slot.id, lease: lease.id }, "lease expired");
}

/** Read again: of the record that was read and what this node has heard, either may be the newer. */
const isHeldBy = async ({ homes }: KeepingPorts, { id }: Slot, lease: LeaseId): Promise<boolean> =>
  (await homes.findBrowser(id))?.browser.lease?.id === lease;

async function probe(ports: KeepingPorts, lastProbe: WeakMap<Slot, Millis>, slot: Slot): Promise<void> {
  const now = ports.clock.monotonic();
  if (slot.isEnding || slot.restarting || now - (lastProbe.get(slot) ?? slot.bornAtMs) < ports.probePeriodMs) return;
  lastProbe.set(slot, now);
  try {
    await slot.chromium.probe(ports.probeLimitMs);
  } catch (error) {
    if (slot.isEnding) return;
    ports.log.warn({ browser: slot.id, error: textOf(error) }, "idle browser did not answer");
    await ports.slots.retireNow(slot, "unhealthy", textOf(error));
  }
}
