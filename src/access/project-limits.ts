import { type Static, Type } from "typebox";
import { done, type Done, type Refusal } from "../base/errors.js";
import type { ProjectId } from "../base/ids.js";
import { ofOrganization, refusedAbove } from "./organization-limits.js";
import type { Principal } from "./principal.js";

/** PATCH /org/projects/{id}/limits (docs/limits.md). */
export const ProjectLimitsPatch = Type.Object(
  {
    max_concurrent_sessions: Type.Optional(
      Type.Union([Type.Integer({ minimum: 0, maximum: 1_000_000 }), Type.Null()], {
        description: "The project's own limit; 0 removes it, null leaves it",
      }),
    ),
    max_concurrent_invocations: Type.Optional(
      Type.Union([Type.Integer({ minimum: 0, maximum: 0 }), Type.Null()], {
        description: "Apps are not built: there is nothing to limit",
      }),
    ),
    max_pooled_sessions: Type.Optional(
      Type.Null({ description: "Pools count with all other browsers: set `max_concurrent_sessions`" }),
    ),
  },
  { additionalProperties: false },
);
export type ProjectLimitsPatch = Static<typeof ProjectLimitsPatch>;

/** Null: it has none of its own. */
export interface ProjectLimits {
  readonly concurrentSessions: number | null;
}

export interface ProjectLimitStore {
  /** The project's own limit. */
  ofProject(project: ProjectId): Promise<number | null>;
  setOfProject(project: ProjectId, limit: number | null): Promise<void>;
}

/** `ref` is a project's id or name; ids win. */
export interface ProjectLimitOperations {
  limits(ref: string, principal: Principal): Promise<Done<ProjectLimits> | Refusal>;
  updateLimits(
    ref: string,
    patch: ProjectLimitsPatch,
    principal: Principal,
  ): Promise<Done<ProjectLimits> | Refusal>;
}

interface LimitedProject {
  readonly id: ProjectId;
}

export interface ProjectLimitPorts {
  readonly limits: ProjectLimitStore;
  /** The organization's limit, as it is configured. */
  readonly concurrentSessions: number | null;
  find(ref: string, principal: Principal): Promise<Done<LimitedProject> | Refusal>;
}

export const makeProjectLimits = (ports: ProjectLimitPorts): ProjectLimitOperations => ({
  async limits(ref, principal) {
    const found = await ports.find(ref, principal);
    return found.kind === "refused" ? found : done(await read(ports, found.value));
  },
  async updateLimits(ref, { max_concurrent_sessions: wanted = null }, principal) {
    const found = await ports.find(ref, principal);
    if (found.kind === "refused") return found;
    if (principal.credentialScope !== null) return ofOrganization;
    if (wanted !== null) {
      const tooHigh = refusedAbove(ports.concurrentSessions, "max_concurrent_sessions", wanted);
      if (tooHigh) return tooHigh;
      await ports.limits.setOfProject(found.value.id, wanted === 0 ? null : wanted);
    }
    return done(await read(ports, found.value));
  },
});

const read = async ({ limits }: ProjectLimitPorts, { id }: LimitedProject): Promise<ProjectLimits> => ({
  concurrentSessions: await limits.ofProject(id),
});
