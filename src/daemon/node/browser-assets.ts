import { type ExtensionId, type ProfileId, projectOf } from "../../base/ids.js";
import { openFrom } from "../../archive/profile-archives.js";
import { unpackExtension } from "../../archive/formats/unzip.js";
import type { BrowserHost } from "../../browser/host.js";
import { hasPrivateRoot } from "../../browser/isolation/rungs.js";
import { packProfile } from "../../browser/profile/pack-profile.js";
import { unpackProfile } from "../../browser/profile/unpack-profile.js";
import { AttachProfile } from "../../node/attach-profile.js";
import { BrowserAssets } from "../../node/browser-assets.js";
import { ChangeSession } from "../../node/change-session.js";
import { ExtensionUploads } from "../../node/extension-uploads.js";
import type { LeaseCommandPorts } from "../../node/lease-commands.js";
import type { NetworkSync } from "../../node/network-sync.js";
import { ProfileSaver } from "../../node/profile-saver.js";
import { Restarts } from "../../node/restarts.js";
import type { Slots } from "../../node/slots.js";
import type { ProfileStore } from "../../registry/profiles/profile.js";
import type { RedisProjects } from "../../store/project/projects.js";
import { makeRefresh } from "../../pool/refresh.js";
import { profileArchivesOf } from "../archives.js";
import { extensionLimits } from "../registries.js";
import type { DaemonParts } from "../parts.js";

/** What browsers of a node are made from, and where what they become is kept. */
export interface AssetsPart {
  readonly assets: BrowserAssets;
  readonly profileSaver: ProfileSaver;
  /** The parts that change running browsers. */
  changing(slots: Slots, networkSync: NetworkSync): Pick<LeaseCommandPorts, "uploads" | "changeSession">;
}

/** What a browser is made from is found by ids alone, which name their project. */
const registryOf = ({ of }: Pick<RedisProjects, "of">) => ({
  extensions: {
    find: (id: ExtensionId) => of(projectOf(id)).extensions.find(id),
    noteUse: (id: ExtensionId) => of(projectOf(id)).extensions.noteUse(id),
  },
  profiles: {
    find: (id: ProfileId) => of(projectOf(id)).profiles.find(id),
    noteUse: (id: ProfileId) => of(projectOf(id)).profiles.noteUse(id),
    commit: (id: ProfileId, archive: Parameters<ProfileStore["commit"]>[1]) =>
      of(projectOf(id)).profiles.commit(id, archive),
  },
});

/** Part of a step of the stop; the rest is for browsers that could not be saved in time. */
const savingShare = 2 / 3;

export function openBrowserAssets(shared: DaemonParts, host: BrowserHost): AssetsPart {
  const { config, clock, log, hurry, stores, metrics, archives } = shared;
  const { cache } = archives;
  const registry = registryOf(stores.projects);
  const profiles = profileArchivesOf(shared, registry.profiles, openFrom(cache));
  // Browsers without a private root see files of the host.
  const seesHostFiles = !hasPrivateRoot(host.walls?.rung ?? "none");
  const rules = { ...extensionLimits(config), seesHostFiles };
  const unpack = (path: string, into: string): Promise<void> => unpackExtension(path, into, rules);
  const assets = new BrowserAssets({
    ...registry,
    archives: profiles,
    cache,
    log,
    unpackExtension: unpack,
    unpackProfile: (tar, room) => unpackProfile(tar, room, config.profiles),
  });
  const profileSaver = new ProfileSaver({
    profiles,
    pack: (keptWorkspace) => packProfile(keptWorkspace, config.profiles),
    saved: (profile) => makeRefresh({ ...stores, ...stores.projects.of(projectOf(profile)) })(profile),
    meter: metrics.node,
    clock,
    log,
    hurry,
    limitMs: config.profiles.saveLimitMs,
    hurriedMs: config.stop.stepMs * savingShare,
    parallelSaves: config.node.parallelLaunches,
  });
  const changing: AssetsPart["changing"] = (slots, networkSync) => {
    const restarts = new Restarts({ slots, clock, log });
    const attachProfile = new AttachProfile({ assets, restarts, log });
    const { poolStore } = stores;
    const { loadLimitMs } = config.extensions;
    return {
      uploads: new ExtensionUploads({ poolStore, restarts, cache, unpack, loadLimitMs, log }),
      changeSession: new ChangeSession({ attachProfile, networkSync, log }),
    };
  };
  return { assets, profileSaver, changing };
}
