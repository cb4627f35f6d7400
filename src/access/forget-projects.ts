import type { Millis } from "../base/clock.js";
import type { ProjectId } from "../base/ids.js";
import type { ProjectDirectory } from "./project.js";
import type { ProjectLimitStore } from "./project-limits.js";

interface ForgetPorts {
  readonly directory: Pick<ProjectDirectory, "all" | "settle" | "deletedFor" | "forget">;
  readonly limits: Pick<ProjectLimitStore, "setOfProject">;
  /**
   * Removes what is registered in it. It was empty when it was deleted, so that late requests have made what
   * is there, and ended before they could take it back.
   */
  removeRegistered(project: ProjectId): Promise<void>;
  /** Whether nothing is left of it that anybody looks after or may ask for. */
  isEmpty(project: ProjectId): Promise<boolean>;
  /** Removes what is kept of an empty one besides. */
  erase(project: ProjectId): Promise<void>;
}

/** A request that was let in before the deletion is long over by then. */
const lateMs: Millis = 3_600_000;

/**
 * Opens projects again whose control has died while it closed them, and forgets those that were deleted a
 * while ago and are empty, so that ticks no longer look into them. Killed on the way, the next run does it
 * again.
 */
export const makeForgetProjects =
  ({ directory, limits, removeRegistered, isEmpty, erase }: ForgetPorts): (() => Promise<void>) =>
  async () => {
    for (const { id, closing } of await directory.all()) if (closing) await directory.settle(id, "overdue");
    for (const project of await directory.deletedFor(lateMs)) {
      await removeRegistered(project);
      if (!(await isEmpty(project))) continue;
      await limits.setOfProject(project, null);
      await erase(project);
      await directory.forget(project);
    }
  };
