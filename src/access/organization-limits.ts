import { type Static, Type } from "typebox";
import { done, type Done, refusal, type Refusal } from "../base/errors.js";
import type { ProjectId } from "../base/ids.js";
import { allows } from "./policy.js";
import { type Principal, projectOfRequest } from "./principal.js";

/** PATCH /org/limits (docs/limits.md). */
export const OrganizationLimitsPatch = Type.Object(
  {
    default_project_max_concurrent_sessions: Type.Optional(
      Type.Union([Type.Integer({ minimum: 0, maximum: 1_000_000 }), Type.Null()], {
        description: "The limit of every project that has none of its own; 0 removes it, null leaves it",
      }),
    ),
  },
  { additionalProperties: false },
);
export type OrganizationLimitsPatch = Static<typeof OrganizationLimitsPatch>;

/** Null: no limit; of what is used: sessions are not counted, since nothing limits them. */
export interface OrganizationLimits {
  readonly concurrentSessions: number | null;
  readonly ofEachProject: number | null;
  readonly usedSessions: number | null;
  readonly usedVaults: number;
}

export interface LimitStore {
  /**
   * The limit of projects that have none of their own, how many browsers are reserved, and whether any
   * project has a limit: then sessions are counted.
   */
  read(): Promise<{
    readonly ofEachProject: number | null;
    readonly reserved: number;
    readonly isAnySet: boolean;
  }>;
  /** Sets that limit where it is still what it was read as. */
  setOfEachProject(before: number | null, after: number | null): Promise<"set" | "changed">;
}

export interface LimitOperations {
  read(principal: Principal): Promise<OrganizationLimits>;
  update(patch: OrganizationLimitsPatch, principal: Principal): Promise<Done<OrganizationLimits> | Refusal>;
}

/** Whether a caller may be told of the organization's limits, as `GET /org/limits` tells them. */
export const seesLimits = (principal: Principal): boolean =>
  principal.policy === undefined ||
  allows(principal.policy, "organizations:read", { project: projectOfRequest(principal) });

interface LimitPorts {
  readonly store: LimitStore;
  /** The organization's limit, as it is configured. */
  readonly concurrentSessions: number | null;
  /** In one project, or in all. */
  countVaults(scope: ProjectId | null): Promise<number>;
}

const updateTries = 10;
const limitField = "default_project_max_concurrent_sessions";
export const ofOrganization = refusal("insufficient_scope", {
  message: "Limits are the organization's to change",
});

export function makeLimitOperations(ports: LimitPorts): LimitOperations {
  const read = async ({ credentialScope }: Principal): Promise<OrganizationLimits> => {
    const [limits, usedVaults] = await Promise.all([ports.store.read(), ports.countVaults(credentialScope)]);
    const all = { ...shown(ports, limits), usedVaults };
    // What other projects have is nothing to a key of one.
    return credentialScope === null ? all : { ...all, usedSessions: null };
  };
  return {
    read,
    async update({ default_project_max_concurrent_sessions: wanted = null }, principal) {
      if (principal.credentialScope !== null) return ofOrganization;
      if (wanted === null) return done(await read(principal));
      const tooHigh = refusedAbove(ports.concurrentSessions, limitField, wanted);
      if (tooHigh) return tooHigh;
      return (await set(ports, wanted === 0 ? null : wanted))
        ? done(await read(principal))
        : refusal("conflict");
    },
  };
}

const shown = (
  { concurrentSessions }: LimitPorts,
  { ofEachProject, reserved, isAnySet }: Awaited<ReturnType<LimitStore["read"]>>,
): Omit<OrganizationLimits, "usedVaults"> => ({
  concurrentSessions,
  ofEachProject,
  usedSessions: concurrentSessions === null && !isAnySet ? null : reserved,
});

/** Why a project may not be given more than the organization has. */
export const refusedAbove = (most: number | null, field: string, wanted: number): Refusal | undefined =>
  most !== null && wanted > most
    ? refusal("bad_request", {
        details: [
          { code: "invalid_input", message: `${field}: must be at most ${most}, the organization's limit` },
        ],
      })
    : undefined;

async function set({ store }: LimitPorts, wanted: number | null): Promise<boolean> {
  for (let tries = 0; tries < updateTries; tries += 1) {
    const { ofEachProject } = await store.read();
    if ((await store.setOfEachProject(ofEachProject, wanted)) === "set") return true;
  }
  return false;
}
