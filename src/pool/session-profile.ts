import type { ProfileId } from "../base/ids.js";
import type { Lease } from "./browser.js";
import type { LaunchTemplate } from "../spec/launch-template.js";

/** A profile that a browser runs with, and whether its end saves it. */
export interface LoadedProfile {
  readonly id: ProfileId;
  readonly save: boolean;
}

/** Of a lease: what a PATCH has attached, else what its browser was launched from. */
export function profileOf(
  { profile_id, profile }: LaunchTemplate,
  lease: Lease | undefined,
): LoadedProfile | undefined {
  if (lease?.profile !== undefined) return JSON.parse(lease.profile) as LoadedProfile;
  return profile_id && { id: profile_id, save: profile?.save_changes ?? false };
}
