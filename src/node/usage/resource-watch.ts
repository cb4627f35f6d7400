import type { Clock, Millis } from "../../base/clock.js";
import { errnoOf } from "../../base/errno.js";
import { type Log, textOf } from "../../base/log.js";
import { yieldTurn } from "../../base/yield-turn.js";
import type { BrowserLimits } from "../../browser/resources/limits.js";
import type { StorageUse, StoringBrowser } from "../../browser/resources/scratch-usage.js";
import { memoryBytes } from "../../spec/bodies.js";
import type { Slot } from "../slot.js";
import type { ExceededLimit } from "../end-reports.js";
import type { Slots } from "../slots.js";
import { lookForOomKills, tellOutOfMemory } from "../system-events.js";

/** The usage of this node's browsers, in the words of browser/. */
interface ResourceUsage {
  /** Memory by the pid of a browser's first process; it is exact only above its limit. */
  memory(
    leaders: readonly number[],
    limitOf: (leader: number) => number,
  ): Promise<ReadonlyMap<number, number>>;
  /** What is stored, by root; null where it could not be counted. */
  stored(browsers: readonly StoringBrowser[]): Promise<ReadonlyMap<string, StorageUse | null>>;
  storedInMount(root: string): StorageUse;
  /** The fullness, from 0 to 1, of the file system that they all lie in. */
  fullness(inMounts: readonly StorageUse[]): Promise<number>;
}

interface ResourceWatchPorts {
  readonly slots: Pick<Slots, "all" | "retireNow">;
  readonly usage: ResourceUsage;
  readonly limits: Pick<BrowserLimits, "maxScratchBytes" | "maxScratchFiles">;
  readonly maxFullness: number;
  readonly memoryPeriodMs: Millis;
  readonly storagePeriodMs: Millis;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: { limitPassed(limit: ExceededLimit): void };
}

/** What earlier looks have left. */
interface EarlierLooks {
  /** The browsers whose files could not be counted the last time. */
  readonly uncounted: WeakSet<Slot>;
  /**
   * The fullness at which the browsers were last looked through and none had much; 0 once it has been below
   * the limit since.
   */
  fullness: number;
  /** The look before this one has ended nobody, since some browser could not be counted. */
  hasWaited: boolean;
}

/** Retires the browsers that have more than they may, where nothing else holds them to it. */
export function startResourceWatch(ports: ResourceWatchPorts): { stop(): void } {
  const { clock, memoryPeriodMs, storagePeriodMs } = ports;
  const seen: EarlierLooks = { uncounted: new WeakSet(), fullness: 0, hasWaited: false };
  const stops = [
    clock.every(
      memoryPeriodMs,
      oneAtATime(ports, async () => {
        await watchMemory(ports);
        await lookForOomKills(running(ports));
        await watchFullness(ports, seen);
      }),
    ),
    clock.every(
      samplePeriodMs,
      oneAtATime(ports, () => sampleMemory(ports)),
    ),
    clock.every(
      storagePeriodMs,
      oneAtATime(ports, () => watchStorage(ports, seen)),
    ),
  ];
  return { stop: () => stops.forEach((stop) => stop()) };
}

/** What cgroups bound is looked at for the flight recorder only. */
const samplePeriodMs: Millis = 5000;

/** One browser in a turn of the event loop: a hundred at once would hold it up. */
async function sampleMemory(ports: ResourceWatchPorts): Promise<void> {
  for (const { chromium, flight } of running(ports)) {
    const memory = await chromium.memory();
    if (memory) flight.memory(memory);
    await yieldTurn();
  }
}

function oneAtATime({ log }: ResourceWatchPorts, look: () => Promise<void>): () => void {
  let isLooking = false;
  return () => {
    if (isLooking) return;
    isLooking = true;
    look()
      .catch((error: unknown) => log.warn({ error: textOf(error) }, "browsers' limits could not be watched"))
      .finally(() => (isLooking = false));
  };
}

/** A browser between two Chromiums has no processes, and what it stores is just being changed by us. */
const isRunning = (slot: Slot): boolean => !slot.isEnding && !slot.restarting;
const running = ({ slots }: ResourceWatchPorts): readonly Slot[] => slots.all().filter(isRunning);

async function watchMemory(ports: ResourceWatchPorts): Promise<void> {
  const watched = running(ports).filter((slot) => slot.chromium.isolation.limits.memory === "watch");
  if (watched.length === 0) return;
  const mosts = new Map(watched.map((slot) => [slot.chromium.pid, memoryBytes(slot.template.memory)]));
  const mostOf = (pid: number): number => mosts.get(pid) ?? Number.MAX_SAFE_INTEGER;
  const held = await ports.usage.memory([...mosts.keys()], mostOf);
  await Promise.all(
    watched.map(async (slot) => {
      const bytes = held.get(slot.chromium.pid) ?? 0;
      slot.flight.memory({ bytes });
      if (bytes <= mostOf(slot.chromium.pid)) return;
      const { pid } = slot.chromium;
      if (!slot.isEnding) tellOutOfMemory(slot, { pid, rss_kb: Math.round(bytes / 1024) });
      await retire(ports, slot, {
        limit: "memory_exceeded",
        why: `it holds ${inMebibytes(bytes)} of memory`,
      });
    }),
  );
}

async function watchStorage(ports: ResourceWatchPorts, { uncounted }: EarlierLooks): Promise<void> {
  const watched = running(ports).filter((slot) => !hasMount(slot));
  const { stored, isStillUncounted } = await countStored(ports, watched, uncounted);
  await Promise.all(
    watched.map(async (slot) => {
      const why = isStillUncounted(slot) ? uncountable : whyTooMuch(ports, stored.get(rootOf(slot)));
      if (why !== undefined) await retire(ports, slot, { limit: "storage_exceeded", why });
    }),
  );
}

/** A busy machine or a change of the files just then may keep one look from counting them, but not two. */
const uncountable = "its files cannot be counted";

async function countStored(
  { usage }: ResourceWatchPorts,
  slots: readonly Slot[],
  uncounted: WeakSet<Slot>,
): Promise<{ stored: ReadonlyMap<string, StorageUse | null>; isStillUncounted(slot: Slot): boolean }> {
  const earlier = new Set(slots.filter((slot) => uncounted.has(slot)));
  const stored = await usage.stored(slots.map((slot) => ({ root: rootOf(slot), pid: slot.chromium.pid })));
  const isUncounted = (slot: Slot): boolean => stored.get(rootOf(slot)) === null;
  for (const slot of slots) {
    if (isUncounted(slot)) uncounted.add(slot);
    else uncounted.delete(slot);
  }
  return { stored, isStillUncounted: (slot) => isUncounted(slot) && earlier.has(slot) };
}

function whyTooMuch(
  { limits }: ResourceWatchPorts,
  stored: StorageUse | null | undefined,
): string | undefined {
  if (!stored) return undefined;
  if (stored.bytes > limits.maxScratchBytes) return `it stores ${inMebibytes(stored.bytes)}`;
  return stored.files > limits.maxScratchFiles ? `it stores ${stored.files} files` : undefined;
}

/** A used browser stores less: what fills the file system then is not browsers. */
const muchBytes = 128 * 2 ** 20;
/** A file system that others keep full is not looked through again before it is so much fuller. */
const fullnessStep = 0.01;

/** Retires the browser that stores most; one at a time, for its end makes room. */
async function watchFullness(ports: ResourceWatchPorts, seen: EarlierLooks): Promise<void> {
  const { hasWaited } = seen;
  seen.hasWaited = false;
  const all = running(ports);
  const inMounts = await measureMounts(ports, all.filter(hasMount));
  const fullness = await ports.usage.fullness([...inMounts.values()]);
  if (fullness <= ports.maxFullness) seen.fullness = 0;
  if (fullness <= Math.max(ports.maxFullness, seen.fullness + fullnessStep)) return;
  const unmounted = all.filter((slot) => !hasMount(slot));
  const { stored, isStillUncounted } = await countStored(ports, unmounted, seen.uncounted);
  const hidden = unmounted.find(isStillUncounted);
  if (hidden !== undefined)
    return await retire(ports, hidden, { limit: "storage_exceeded", why: uncountable });
  // The browser that cannot be counted may be the one that stores most.
  seen.hasWaited = !hasWaited && [...stored.values()].includes(null);
  if (seen.hasWaited) return;
  const bytesOf = (slot: Slot): number => (inMounts.get(slot) ?? stored.get(rootOf(slot)))?.bytes ?? 0;
  await retireMost(ports, seen, { all, bytesOf, fullness });
}

interface FullLook {
  readonly all: readonly Slot[];
  bytesOf(slot: Slot): number;
  readonly fullness: number;
}

async function retireMost(
  ports: ResourceWatchPorts,
  seen: EarlierLooks,
  { all, bytesOf, fullness }: FullLook,
): Promise<void> {
  const [most] = all.toSorted((a, b) => bytesOf(b) - bytesOf(a));
  const percent = Math.round(fullness * 100);
  if (most === undefined || bytesOf(most) < muchBytes) {
    seen.fullness = fullness;
    ports.log.warn({ percent }, "scratch directory is full, and no browser stores much");
    return;
  }
  await retire(ports, most, {
    limit: "storage_exceeded",
    why: `its node is ${percent} % full, and it stores most: ${inMebibytes(bytesOf(most))}`,
  });
}

/**
 * One mount in a turn of the event loop; a browser that ends meanwhile has none any more. Nor has one whose
 * directory somebody has moved or removed, which keeps no other from being measured.
 */
async function measureMounts(
  { usage }: ResourceWatchPorts,
  slots: readonly Slot[],
): Promise<ReadonlyMap<Slot, StorageUse>> {
  const measured = new Map<Slot, StorageUse>();
  for (const slot of slots) {
    const use = isRunning(slot) ? findMountUse(usage, rootOf(slot)) : undefined;
    if (use) measured.set(slot, use);
    await yieldTurn();
  }
  return measured;
}

function findMountUse(usage: ResourceUsage, root: string): StorageUse | undefined {
  try {
    return usage.storedInMount(root);
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

async function retire(
  { slots, log, meter }: ResourceWatchPorts,
  slot: Slot,
  { limit, why }: { limit: ExceededLimit; why: string },
): Promise<void> {
  if (slot.isEnding) return;
  log.warn({ browser: slot.id, limit, why }, "browser passed its limit");
  meter.limitPassed(limit);
  await slots.retireNow(slot, limit, why);
}

const hasMount = (slot: Slot): boolean => slot.chromium.isolation.limits.scratch === "mount";
const rootOf = (slot: Slot): string => slot.chromium.directories.root;
const inMebibytes = (bytes: number): string => `${Math.round(bytes / 2 ** 20)} MiB`;
