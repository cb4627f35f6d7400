import type { ArchivesPart } from "./archives.js";
import { makeProfileArchives } from "../archive/profile-archives.js";
import { StreamSeal } from "../archive/stream-seal.js";
import type { Config } from "../config/config.js";
import { encryptionKey } from "../config/kept.js";
import { makeProfileOperations } from "../registry/profiles/operations.js";
import type { ProfileOperations } from "../registry/profiles/profile.js";
import type { Stores } from "./state.js";

interface Wiring extends Pick<ArchivesPart, "archives" | "staging"> {
  readonly stores: Stores;
}

/** The registry of profiles, wired by hand. */
export async function openProfiles(
  config: Config,
  { stores, archives, staging }: Wiring,
): Promise<ProfileOperations> {
  const { poolStore, projects, profiles } = stores;
  const states = makeProfileArchives({
    profiles,
    archives,
    staging,
    seal: new StreamSeal(await encryptionKey(config)),
    maxBytes: config.profiles.maxBytes,
    open: (digest) => archives.open(digest),
  });
  return makeProfileOperations({
    poolStore,
    projects,
    store: profiles,
    states,
    maxProfiles: config.limits.maxProfiles,
  });
}
