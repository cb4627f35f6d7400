import type { Config } from "./config.js";
import { makeProfileOperations, type SavedStates } from "./registry/profile-operations.js";
import type { ProfileOperations } from "./registry/profiles.js";
import type { State } from "./state.js";

/** The registry of profiles, wired by hand. */
export const openProfiles = (config: Config, { homes, projects, profiles }: State, states: SavedStates): ProfileOperations =>
  makeProfileOperations({ homes, projects, store: profiles, states, maxProfiles: config.limits.maxProfiles });

/** As long as nothing saves, nothing is saved. */
export const noStates: SavedStates = { open: async () => undefined, openCompressed: async () => undefined };
