import { type Static, Type } from "typebox";
import { ProfileId } from "../base/ids.js";
import { parserOf } from "../base/parser.js";
import type { Lease } from "./browser.js";
import type { LaunchTemplate } from "../spec/launch-template.js";

/** A profile that a browser runs with, and whether its end saves it. */
const LoadedProfile = Type.Object({ id: ProfileId, save: Type.Boolean() });
export type LoadedProfile = Readonly<Static<typeof LoadedProfile>>;
export const loadedProfileParser = parserOf("the profile of a lease", LoadedProfile);

/** The profile of a lease: the one a PATCH has attached, else the one its browser was launched from. */
export function profileOf(
  { profile_id, profile }: LaunchTemplate,
  lease: Lease | undefined,
): LoadedProfile | undefined {
  if (lease?.profile !== undefined) return loadedProfileParser.json(lease.profile);
  return profile_id && { id: profile_id, save: profile?.save_changes ?? false };
}
