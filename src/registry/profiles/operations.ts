import type { Readable } from "node:stream";
import { done, type Done, refusal, type Refusal } from "../../base/errors.js";
import { findProfileId, newProfileId, type ProfileId } from "../../base/ids.js";
import { isWanted, pageOf } from "../../spec/paging.js";
import type { PoolStore } from "../../pool/ports/pool-store.js";
import type { ProjectStore } from "../../pool/ports/project-store.js";
import { refuseInUse } from "../in-use.js";
import type { Profile, ProfileOperations, ProfileStore } from "./profile.js";

/**
 * The state of profiles as streams; undefined where none was saved, or there is no such profile. Throw
 * `secret_unreadable`.
 */
export interface SavedStates {
  /** The tar. */
  open(id: ProfileId): Promise<Readable | undefined>;
  /** The tar as it is kept: compressed with zstd. */
  openCompressed(id: ProfileId): Promise<Readable | undefined>;
}

interface ProfilePorts {
  readonly store: ProfileStore;
  readonly states: SavedStates;
  readonly poolStore: PoolStore;
  readonly projects: ProjectStore;
  readonly maxProfiles: number;
}

export const makeProfileOperations = (ports: ProfilePorts): ProfileOperations => ({
  create: makeCreate(ports),
  list: makeList(ports),
  get: async (ref) => found(await findProfile(ports, ref)),
  rename: makeRename(ports),
  remove: makeRemove(ports),
  download: makeDownload(ports),
});

const found = (profile: Profile | undefined): Done<Profile> | Refusal =>
  profile ? done(profile) : refusal("profile_not_found");

/** Ids win over names in `{id_or_name}` (docs/api.md#names-and-ids). */
async function findProfile(
  { store }: Pick<ProfilePorts, "store">,
  ref: string,
): Promise<Profile | undefined> {
  const id = findProfileId(ref);
  const byId = id && (await store.find(id));
  if (byId) return byId;
  const named = await store.findNamed(ref);
  return named && (await store.find(named));
}

const makeList =
  ({ store }: ProfilePorts): ProfileOperations["list"] =>
  async (query) => {
    const { sees = () => true } = query;
    if (query.name === undefined && query.query === undefined && query.sees === undefined)
      return await store.page(query);
    const page = pageOf(
      (await store.index()).filter((profile) => sees(profile) && isWanted(profile, query)),
      query,
    );
    const items = (await Promise.all(page.items.map(({ id }) => store.find(id)))).flatMap(
      (profile) => profile ?? [],
    );
    // Profiles that were deleted meanwhile make the rest move up.
    return { items, hasMore: page.hasMore, nextOffset: query.offset + items.length };
  };

const makeCreate =
  ({ store, projects, maxProfiles }: ProfilePorts): ProfileOperations["create"] =>
  async ({ name }) => {
    const id = newProfileId(projects.project);
    const created = await store.create({ id, most: maxProfiles, ...(name === undefined ? {} : { name }) });
    if (created === "many")
      return refusal("limit_exceeded", {
        message: "The project has as many profiles as it may have",
        reached: { of: "project", most: maxProfiles },
      });
    return created === "taken" ? refusal("name_taken") : found(await store.find(id));
  };

const makeRename =
  (ports: ProfilePorts): ProfileOperations["rename"] =>
  async (ref, name) => {
    const profile = await findProfile(ports, ref);
    if (!profile) return refusal("profile_not_found");
    const outcome = await ports.store.rename(profile.id, name);
    return outcome === "taken" ? refusal("name_taken") : found(await ports.store.find(profile.id));
  };

/**
 * Refused while a pool names it; sessions keep what they were launched with, and save nothing. A pool that
 * comes to name it at this very moment is left with a profile that is gone: its launches fail and say so.
 */
const makeRemove =
  (ports: ProfilePorts): ProfileOperations["remove"] =>
  async (ref) => {
    const profile = await findProfile(ports, ref);
    if (!profile) return refusal("profile_not_found");
    const inUse = await refuseInUse(ports, "Pools use this profile", profile.id);
    if (inUse) return inUse;
    // Missing by now: this very command was sent again after a broken connection, or another came before it.
    await ports.store.remove(profile.id);
    return done(null);
  };

const makeDownload =
  (ports: ProfilePorts): ProfileOperations["download"] =>
  async (ref, format) => {
    const profile = await findProfile(ports, ref);
    if (!profile) return refusal("profile_not_found");
    if (!profile.archive) return done(undefined);
    const bytes = await (format === "tar"
      ? ports.states.open(profile.id)
      : ports.states.openCompressed(profile.id));
    // A state is replaced, never taken back: the profile was deleted meanwhile.
    return bytes ? done({ bytes }) : refusal("profile_not_found");
  };
