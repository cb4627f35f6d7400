import type { Millis } from "../../base/clock.js";
import { findProfileId, type ProfileId } from "../../base/ids.js";
import type { Selector } from "../../spec/bodies.js";
import { calledBy } from "../extensions/selectors.js";
import { fieldFault, type FieldFaults } from "../../spec/field-checks.js";

/** What of a profile is shown, and when it was saved last. */
export interface ProfileFacts {
  readonly id: ProfileId;
  readonly name?: string;
  readonly createdAt: Millis;
  readonly updatedAt?: Millis;
  readonly lastUsedAt?: Millis;
  readonly archive?: { readonly savedAt: Millis };
}

/** The profiles of the project, as specifications of pools and bodies of sessions refer to them. */
export interface ProfileRefs {
  find(id: ProfileId): Promise<ProfileFacts | undefined>;
  findNamed(name: string): Promise<ProfileId | undefined>;
}

/** An empty id or name clears; an empty object is at fault (docs/api.md#changing-a-pool). */
export const clearsProfile = ({ id, name }: Selector): boolean =>
  !id && !name && (id !== undefined || name !== undefined);

/**
 * What the selector means, or a fault where it means no profile; one of the wrong form is left to be told as
 * such.
 */
export async function resolveProfile(
  refs: ProfileRefs,
  selector: Selector,
): Promise<{ id?: ProfileId; faults: FieldFaults }> {
  if (Boolean(selector.id) === Boolean(selector.name)) return { faults: [] };
  const asked = findProfileId(selector.id ?? "");
  const id = selector.name ? await refs.findNamed(selector.name) : asked && (await refs.find(asked))?.id;
  if (id) return { id, faults: [] };
  const faults: FieldFaults = [];
  fieldFault(faults, "profile", `there is no profile ${calledBy(selector)}`);
  return { faults };
}
