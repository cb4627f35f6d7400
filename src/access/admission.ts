import { refusal } from "../base/errors.js";
import { defaultProject, findProjectId, type ProjectId } from "../base/ids.js";
import type { Admitted, Principal } from "./principal.js";
import { type Rate, refusedBy } from "./rate-limiter.js";

/** What is asked about a caller who is known without a look-up. */
export interface CallerStore {
  /** Whether callers have a rate, so that each request of one is asked about. */
  readonly isLimited: boolean;
  /** One round trip. `elsewhere`: there is no such active project. Who is not counted has no rate. */
  admit(
    caller: string,
    project: ProjectId,
    isUncounted?: boolean,
  ): Promise<{ readonly kind: "admitted" | "limited" | "elsewhere"; readonly rate?: Rate }>;
}

/** What is known of a request before anybody has judged its credential. */
export interface UnjudgedRequest {
  /** The project that its header names. */
  readonly named: string | undefined;
  /** Whether it is let in whatever is left of its caller's rate, and takes nothing out. */
  readonly isUncounted: boolean;
}

/** What the store has said of a request whose credential is good. */
interface StoreVerdict {
  /** Whether the project is active that the request is about. */
  readonly isActive: boolean;
  readonly rate?: Rate | undefined;
}

/** Decides where a request is let in whose caller is known, and whether that is now. */
export class CallerAdmission {
  constructor(
    private readonly callers: CallerStore,
    /** False where there is the default project only. */
    private readonly hasProjects: boolean,
  ) {}

  /** Admits somebody who needs no look-up: Redis is asked about another project, and about a rate. */
  known(principal: Principal, caller: string, { named, isUncounted }: UnjudgedRequest) {
    const about = this.projectOf(principal, named);
    const isCounted = this.callers.isLimited && !isUncounted;
    const isAsked = isCounted || (this.hasProjects && about !== defaultProject);
    if (!isAsked) return this.settle(principal, named, { isActive: about === defaultProject });
    return this.callers
      .admit(caller, about, isUncounted)
      .then(({ kind, ...rest }) =>
        this.settle(principal, named, { isActive: kind !== "elsewhere", ...rest }),
      );
  }

  /** The project that a request is about: the one that it names, else that of its credential. */
  projectOf({ credentialScope }: Principal, named: string | undefined): ProjectId {
    return (named === undefined ? credentialScope : findProjectId(named)) ?? defaultProject;
  }

  settle(principal: Principal, named: string | undefined, { isActive, rate }: StoreVerdict): Admitted {
    const told = rate ? { principal, rate } : { principal };
    const limited = rate && refusedBy(rate);
    if (limited) return { ...limited, ...told };
    // A key of one project is about that project, whether the request names it or not.
    const { credentialScope } = principal;
    if (named !== undefined && credentialScope !== null && credentialScope !== named)
      return { ...anotherProject, ...told };
    const about = this.projectOf(principal, named);
    const isThere = isActive && (this.hasProjects || about === defaultProject);
    if (!isThere || (named !== undefined && about !== named))
      return { ...(named === undefined ? ownNotActive : namesNone), ...told };
    const admitted = named === undefined ? principal : { ...principal, effectiveScope: about };
    return rate ? { kind: "admitted", principal: admitted, rate } : { kind: "admitted", principal: admitted };
  }
}

const anotherProject = refusal("insufficient_scope", {
  message: "This credential reaches another project only",
});
const namesNone = refusal("project_not_found", {
  message: "X-Kernel-Project-Id is the id of no active project",
});
const ownNotActive = refusal("project_not_found", { message: "This credential's project is not active" });
