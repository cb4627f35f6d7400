import { expect } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import type { BrowserHost, HostSettings } from "../../../src/browser/host.js";
import { openLaunch } from "../../../src/browser/launch.js";
import type { Chromium } from "../../../src/browser/chromium.js";
import { Bridge } from "../../../src/gateway/cdp/bridge.js";
import { makeReservedEndpoints } from "../../../src/egress/reserved-endpoints.js";
import { openPort } from "../../../src/egress/port.js";
import { makeResolve } from "../../../src/egress/resolve.js";
import { packProfile } from "../../../src/browser/profile/pack-profile.js";
import { unpackProfile } from "../../../src/browser/profile/unpack-profile.js";
import { unpackExtension } from "../../../src/archive/formats/unzip.js";
import { ChangeSession } from "../../../src/node/change-session.js";
import { AttachProfile } from "../../../src/node/attach-profile.js";
import { RedisContact } from "../../../src/node/redis-contact.js";
import { BrowserEgress } from "../../../src/node/browser-egress.js";
import { NetworkSync } from "../../../src/node/network-sync.js";
import { ArmedPasskeys, type PasskeyChange } from "../../../src/node/armed-passkeys.js";
import { PageFills } from "../../../src/node/page-fills.js";
import { done, type Refusal } from "../../../src/base/errors.js";
import type { PageFill } from "../../../src/spec/page-fill.js";
import { Seal } from "../../../src/base/crypto/seal.js";
import { Secret } from "../../../src/base/crypto/secret.js";
import { Reconciler } from "../../../src/node/reconciler.js";
import { LeaseCommands } from "../../../src/node/lease-commands.js";
import { EpochRegistration, LeaseHandover } from "../../../src/node/lease-handover.js";
import { BrowserAssets } from "../../../src/node/browser-assets.js";
import { Restarts } from "../../../src/node/restarts.js";
import { type SaveOutcome, ProfileSaver } from "../../../src/node/profile-saver.js";
import { type SlotPorts, Slots } from "../../../src/node/slots.js";
import { ExtensionUploads } from "../../../src/node/extension-uploads.js";
import type { Browser } from "../../../src/pool/browser.js";
import type { PoolStore } from "../../../src/pool/ports/pool-store.js";
import type { NodeReports } from "../../../src/pool/ports/node-reports.js";
import { nothing, takeCensus } from "../browser/chromium-census.js";
import { type FakeChromium, makeFakeChromium, readableByFakes } from "../browser/chromium-fake.js";
import { openTestHost, silentLog } from "../browser/chromium-host.js";
import { type Broken, failing } from "../failing.js";
import { DrivenClock } from "../driven-clock.js";
import { type AssetsBed, openAssetsBed } from "./assets-bed.js";
import { nodeA } from "../store/pool-bed.js";
import { startRedis, type TestRedis } from "../store/redis.js";
import { claimOf, openStoreBed, type StoreBed } from "../store/store-bed.js";
import { unstoredTelemetry } from "../telemetry/recorder.js";

/** Seals what nodes of the tests are asked to fill. */
export const bedSeal = new Seal(new Secret("a secret of the node's bed"));

/**
 * A node's slots over a real store and fake Chromium processes, unless real ones are asked for; a test says
 * which calls of the store fail.
 */
export interface NodeBed {
  readonly assets: AssetsBed;
  readonly leaseCommands: LeaseCommands;
  readonly handover: LeaseHandover;
  readonly registration: EpochRegistration;
  readonly reconciler: Reconciler;
  readonly redisContact: RedisContact;
  readonly uploads: ExtensionUploads;
  readonly changeSession: ChangeSession;
  readonly host: BrowserHost;
  readonly saves: { readonly outcomes: SaveOutcome[]; readonly told: string[] };
  readonly bed: StoreBed;
  readonly broken: Broken;
  readonly slots: Slots;
  readonly networkSync: NetworkSync;
  readonly launched: Chromium[];
  readonly fake: FakeChromium;
  /**
   * Moves the time on by which the node looks after its browsers. Redis answers in real time: moved by its
   * contact's limit at once, the node may take Redis for away and shut every way out.
   */
  readonly clock: DrivenClock;
  readonly poolStore: PoolStore;
  launch(browser: Browser): Promise<void>;
  /** What restores records that Redis has forgotten; nothing does until then. */
  recovers(work: () => Promise<void>): void;
  close(): Promise<void>;
}

interface Options extends Partial<
  Pick<SlotPorts, "maxBrowsers" | "maxBytes" | "parallelLaunches" | "launchLimitMs" | "makeTelemetry">
> {
  /** What holds a launch up before Chromium is started. */
  readonly before?: () => Promise<void>;
  readonly isReal?: boolean;
  /** Whether browsers too go by the clock that a test moves, as the inactivity of their leases does. */
  readonly isDriven?: boolean;
  /** The limits of saves, and what gives them up. */
  readonly saving?: { readonly limitMs?: number; readonly hurriedMs?: number; readonly hurry?: AbortSignal };
  readonly profileFiles?: number;
  /** Why an order of a vault comes too late by now. */
  readonly refuseLate?: () => Promise<Refusal | undefined>;
  readonly hostSettings?: Pick<HostSettings, "limits" | "usesMounts">;
}

/** On a busy machine Chromium takes its time. */
const realLimitMs = 60_000;

export async function openNodeBed(
  project: string,
  { isReal = false, isDriven = false, saving, profileFiles, before, refuseLate, ...settings }: Options = {},
): Promise<NodeBed> {
  const server: TestRedis = await startRedis();
  const bed = await openStoreBed(server, { project });
  const fake = await makeFakeChromium();
  const host: BrowserHost = await openTestHost({
    ...settings.hostSettings,
    ...(!isReal && {
      named: { chromium: fake.executable, "headless-shell": fake.executable },
      readablePaths: readableByFakes,
    }),
  });
  const broken: Broken = new Set();
  const launched: Chromium[] = [];
  const poolStore = failing<PoolStore>(bed.poolStore, broken);
  const reports = failing<NodeReports>(bed.reports, broken);
  const clock = new DrivenClock();
  const networkSync = new NetworkSync({ poolStore, reports, clock, log: silentLog });
  const reserved = makeReservedEndpoints([{ host: "127.0.0.1", port: host.canary.port }]);
  const assetsBed = await openAssetsBed(bed);
  const profileLimits = { maxBytes: 2 ** 30, maxFiles: profileFiles ?? 10_000 };
  const saves: { outcomes: SaveOutcome[]; told: string[] } = { outcomes: [], told: [] };
  const profileSaver = new ProfileSaver({
    profiles: failing(assetsBed.archives, broken),
    pack: (keptWorkspace) => packProfile(keptWorkspace, profileLimits),
    saved: async (profile) => void saves.told.push(profile),
    clock: systemClock,
    log: silentLog,
    meter: { profileSaved: (outcome) => void saves.outcomes.push(outcome) },
    limitMs: 30_000,
    hurriedMs: 60_000,
    hurry: new AbortController().signal,
    parallelSaves: 2,
    ...saving,
  });
  const unpack = (path: string, into: string): Promise<void> =>
    unpackExtension(path, into, { maxFiles: 100, maxUnpackedBytes: 2 ** 20 });
  const assets = new BrowserAssets({
    ...assetsBed,
    log: silentLog,
    unpackExtension: unpack,
    unpackProfile: (tar, room) => unpackProfile(tar, room, profileLimits),
  });
  const projects = failing(bed.projects, broken);
  const slots = new Slots({
    profileSaver,
    fillWorkspaceOf: (template) => assets.of(template),
    openBrowserEgress: (browser, template) =>
      BrowserEgress.open(browser, template, {
        privateHosts: ["127.0.0.0/8"],
        privateHostsCeiling: [],
        allowedProbeUrl: null,
        log: silentLog,
        meter: { opened() {}, closed() {} },
        openUpstream: async () => undefined,
        openListener: async () => openPort(),
        egress: {
          settings: {
            connectMs: 60_000,
            idleMs: 60_000,
            maxConnections: 100,
            bytesPerSecond: null,
            headerBytes: 65_536,
          },
          resolve: makeResolve({ clock: systemClock, limitMs: 2000 }),
          reserved,
          proxyHosts: [],
          clock: systemClock,
          log: silentLog,
          meter: { request() {}, carried() {} },
        },
      }),
    poolStore,
    reports,
    clock: isDriven ? clock : systemClock,
    log: silentLog,
    parallelLaunches: 4,
    launchLimitMs: 90_000,
    maxBrowsers: 10,
    maxBytes: 2 ** 40,
    makeTelemetry: unstoredTelemetry,
    ...settings,
    async openLaunch(spec, options) {
      await before?.();
      const { room, start } = await openLaunch(spec, host, options);
      return {
        room,
        async start(filling) {
          const chromium = await start(filling);
          launched.push(chromium);
          return chromium;
        },
      };
    },
    makeBridge: ({ pipe }, recorder) => new Bridge(pipe, systemClock, { recorder }),
    keepRecording: (browser, text) => projects.keepRecording(browser, text),
    meter: { launched() {}, failed() {} },
    health: { launched() {}, failed() {} },
  });
  const restarts = new Restarts({ slots, clock: systemClock, log: silentLog });
  const uploads = new ExtensionUploads({
    poolStore,
    restarts,
    cache: assetsBed.cache,
    unpack,
    loadLimitMs: isReal ? realLimitMs : 5000,
    log: silentLog,
  });
  const changeSession = new ChangeSession({
    attachProfile: new AttachProfile({ assets, restarts, log: silentLog }),
    networkSync,
    log: silentLog,
  });
  const registration = new EpochRegistration({ node: nodeA, slots, reports, log: silentLog });
  const told = { slots, poolStore, reports, networkSync, log: silentLog };
  const handover = new LeaseHandover({ ...told, registration });
  const ordered = { seal: bedSeal, refuseLate: refuseLate ?? (async () => undefined) };
  const leaseCommands = new LeaseCommands({
    ...told,
    handover,
    uploads,
    changeSession,
    passkeys: new ArmedPasskeys({
      ...ordered,
      clock,
      log: silentLog,
      keepPasskey: async () => done(null),
      openPasskey: async (order) => done(JSON.parse(order) as PasskeyChange),
    }),
    pageFills: new PageFills({
      ...ordered,
      // A vault would open what an order names; here the order is the fill.
      openFill: async (order) => done(JSON.parse(order) as PageFill),
    }),
    resetLimitMs: isReal ? realLimitMs : 5000,
    answer: async () => {},
  });
  const contactLimits = { isCluster: true, limitMs: 4000, isolatedMs: 120_000 };
  const redisContact = new RedisContact({ ...told, node: nodeA, clock, ...contactLimits });
  let recover = async (): Promise<void> => {};
  const reconciler = new Reconciler({
    node: nodeA,
    nameOwnership: { holds: async () => true },
    nodes: bed.nodes,
    slots,
    poolStore,
    projects,
    reports,
    handover,
    recover: () => recover(),
    listAgain: (partition) => bed.dataset.listAgain(partition),
    noteRead: () => {},
    clock,
    log: silentLog,
    expirePeriodMs: 5000,
    probePeriodMs: 60_000,
    probeLimitMs: 1000,
  });
  const stopKeeping = reconciler.start();
  return {
    assets: assetsBed,
    leaseCommands,
    handover,
    registration,
    reconciler,
    redisContact,
    uploads,
    changeSession,
    host,
    saves,
    bed,
    broken,
    slots,
    networkSync,
    launched,
    fake,
    clock,
    poolStore,
    recovers: (work) => void (recover = work),
    launch: (browser) =>
      slots.launch({ kind: "launch", node: nodeA, browser: browser.id, claim: claimOf(browser) }),
    async close() {
      redisContact.close();
      stopKeeping();
      await slots.close();
      const left = await takeCensus(
        host.scratchDirectory,
        new Set(launched.map(({ isolation }) => isolation.uid ?? -1)),
      );
      await host.close();
      expect(left).toEqual(nothing);
      await fake.remove();
      await assetsBed.close();
      await bed.close();
      await server.stop();
    },
  };
}
