import type { ArchivesPart } from "./archives.js";
import { makeProfileArchives, openFrom } from "../archive/profile-archives.js";
import { StreamSeal } from "../archive/stream-seal.js";
import { unpackExtension } from "../archive/formats/unzip.js";
import { packProfile } from "../browser/profile/pack-profile.js";
import { unpackProfile } from "../browser/profile/unpack-profile.js";
import type { Config } from "../config/config.js";
import { encryptionKey } from "../config/kept.js";
import { extensionLimits } from "./extensions.js";
import type { DaemonContext } from "./boot.js";
import { AttachProfile } from "../node/attach-profile.js";
import { ChangeSession } from "../node/change-session.js";
import type { NetworkSync } from "../node/network-sync.js";
import type { LeaseCommandPorts } from "../node/lease-commands.js";
import { BrowserAssets } from "../node/browser-assets.js";
import { Restarts } from "../node/restarts.js";
import { ProfileSaver } from "../node/profile-saver.js";
import type { Slots } from "../node/slots.js";
import { ExtensionUploads } from "../node/extension-uploads.js";
import { makeRefresh } from "../pool/refresh.js";
import type { ProfileArchives } from "../registry/profiles/profile.js";
import type { Stores } from "./state.js";
import type { Metrics } from "../observe/metrics.js";

interface Wiring {
  readonly stores: Stores;
  readonly metrics: Metrics;
  readonly archives: Omit<ArchivesPart, "stops">;
  /** Without a private root, browsers do. */
  readonly seesHostFiles: boolean;
}

/** What browsers of a node are made from, and where what they become is kept. */
export interface AssetsPart {
  readonly assets: BrowserAssets;
  readonly profileSaver: ProfileSaver;
  /** What makes of running browsers something else. */
  changing(slots: Slots, networkSync: NetworkSync): Pick<LeaseCommandPorts, "uploads" | "changeSession">;
}

/** Of a step of the stop; the rest is for browsers that could not be saved in time. */
const savingShare = 2 / 3;

/** Wired by hand. */
export async function openBrowserAssets(
  config: Config,
  { log, clock, hurry }: DaemonContext,
  { stores, metrics, archives, seesHostFiles }: Wiring,
): Promise<AssetsPart> {
  const profiles = await openProfileArchives(config, { stores, archives });
  const { cache } = archives;
  const rules = { ...extensionLimits(config), seesHostFiles };
  const unpack = (path: string, into: string): Promise<void> => unpackExtension(path, into, rules);
  const assets = new BrowserAssets({
    extensions: stores.extensions,
    profiles: stores.profiles,
    archives: profiles,
    cache,
    log,
    unpackExtension: unpack,
    unpackProfile: (tar, room) => unpackProfile(tar, room, config.profiles),
  });
  const profileSaver = new ProfileSaver({
    profiles,
    pack: packProfile,
    saved: makeRefresh(stores),
    meter: metrics,
    clock,
    log,
    hurry,
    limitMs: config.profiles.saveLimitMs,
    hurriedMs: config.stop.stepMs * savingShare,
    parallelSaves: config.node.parallelLaunches,
  });
  const changing: AssetsPart["changing"] = (slots, networkSync) => {
    const restarts = new Restarts({ slots, clock, log });
    return {
      uploads: new ExtensionUploads({
        poolStore: stores.poolStore,
        restarts,
        cache,
        unpack,
        loadLimitMs: config.extensions.loadLimitMs,
        log,
      }),
      changeSession: new ChangeSession({
        attachProfile: new AttachProfile({ assets, restarts, log }),
        networkSync,
        log,
      }),
    };
  };
  return { assets, profileSaver, changing };
}

async function openProfileArchives(
  config: Config,
  { stores, archives: { archives, staging, cache } }: Pick<Wiring, "stores" | "archives">,
): Promise<ProfileArchives> {
  const seal = new StreamSeal(await encryptionKey(config));
  return makeProfileArchives({
    profiles: stores.profiles,
    archives,
    staging,
    seal,
    maxBytes: config.profiles.maxBytes,
    open: openFrom(cache),
  });
}
