import type { ExtensionId, ProfileId } from "../../../src/base/ids.js";
import type { PoolCreate, PoolPatch, SessionCreate } from "../../../src/spec/bodies.js";
import type { PoolSpec } from "../../../src/spec/launch-template.js";
import {
  createPoolSpec,
  type SpecDefaults,
  mergePoolSpec,
  createSessionTemplate,
} from "../../../src/pool/merge-spec.js";
import type { Resolved } from "../../../src/registry/references.js";
import { patternsOf } from "../../../src/base/net/hosts.js";

export const defaults: SpecDefaults = {
  fillRatePerMinute: 25,
  maxFillRatePerMinute: null,
  engine: "chromium",
  privateHostsCeiling: patternsOf(["0.0.0.0/0", "::/0"]),
};

/** A selector means what it says: an id as well as a name. */
export const meant = <Body extends Pick<PoolPatch, "extensions" | "profile">>(
  body: Body,
): Body & Resolved => ({
  ...body,
  ...(body.extensions && {
    extension_ids: body.extensions.map(({ id, name }) => (id ?? name) as ExtensionId),
  }),
  ...((body.profile?.id || body.profile?.name) && {
    profile_id: (body.profile.id || body.profile.name) as ProfileId,
  }),
});

export function made(body: Partial<PoolCreate>, given: Partial<SpecDefaults> = {}): PoolSpec {
  const spec = createPoolSpec(meant({ size: 2, ...body }), { ...defaults, ...given });
  if (spec.kind === "refused") throw new Error(JSON.stringify(spec.details));
  return spec.value;
}

export function merged(current: Partial<PoolCreate>, patch: PoolPatch): PoolSpec {
  const spec = mergePoolSpec(made(current), meant(patch), defaults);
  if (spec.kind === "refused") throw new Error(JSON.stringify(spec.details));
  return spec.value;
}

/** The fields that are at fault. */
export function faultsOf(
  template: ReturnType<typeof createPoolSpec> | ReturnType<typeof createSessionTemplate>,
): readonly (string | undefined)[] {
  return template.kind === "refused"
    ? (template.details ?? []).map(({ message }) => message.split(":")[0])
    : [];
}
export const faultsOfPool = (body: Partial<PoolCreate>): readonly (string | undefined)[] =>
  faultsOf(createPoolSpec(meant({ size: 2, ...body }), defaults));
export const faultsOfPatch = (
  current: Partial<PoolCreate>,
  patch: PoolPatch,
): readonly (string | undefined)[] => faultsOf(mergePoolSpec(made(current), meant(patch), defaults));
export const faultsOfSession = (body: SessionCreate): readonly (string | undefined)[] =>
  faultsOf(createSessionTemplate(body, defaults));
