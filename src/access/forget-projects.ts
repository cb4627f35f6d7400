import type { Millis } from "../base/clock.js";
import { attemptEach } from "../base/concurrently.js";
import type { ProjectId } from "../base/ids.js";
import type { ProjectDirectory } from "./project.js";
import type { ProjectLimitStore } from "./project-limits.js";

interface ForgetPorts {
  readonly directory: Pick<ProjectDirectory, "all" | "settle" | "archivedFor" | "deletedFor" | "forget">;
  readonly limits: Pick<ProjectLimitStore, "setOfProject">;
  /** Pools and sessions that are there, and how to end them; undefined where there are none. */
  findRunning(project: ProjectId): Promise<(() => Promise<void>) | undefined>;
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

const projectsAtOnce = 4;

/** A request that was let in before the deletion is long over by then. */
const lateMs: Millis = 3_600_000;

/** Whoever has made something in a project that is closed has taken it back by then, unless it has died. */
const orphanMs: Millis = 120_000;

/**
 * Ends what was begun in a project that was empty when it was archived or deleted. It is found first, so that
 * nothing is meant that was begun after somebody has made the project active again.
 */
async function endOrphans({ directory, findRunning }: ForgetPorts): Promise<void> {
  const over = async (): Promise<readonly ProjectId[]> => [
    ...(await directory.archivedFor(orphanMs)),
    ...(await directory.deletedFor(orphanMs)),
  ];
  await attemptEach(await over(), projectsAtOnce, async (project) => {
    const end = await findRunning(project);
    if (end && (await over()).includes(project)) await end();
  });
}

/**
 * Opens projects again whose control has died while it closed them, ends what was begun in closed ones, and
 * forgets those that were deleted a while ago and are empty, so that ticks no longer look into them. What
 * fails for one holds up no other. Killed on the way, the next run does it again.
 */
export const makeForgetProjects =
  (ports: ForgetPorts): (() => Promise<void>) =>
  async () => {
    const { directory, limits, removeRegistered, isEmpty, erase } = ports;
    const steps = [
      async () => {
        const closing = (await directory.all()).filter((project) => project.closing);
        await attemptEach(closing, projectsAtOnce, ({ id }) => directory.settle(id, "overdue"));
      },
      () => endOrphans(ports),
      async () =>
        attemptEach(await directory.deletedFor(lateMs), projectsAtOnce, async (project) => {
          await removeRegistered(project);
          if (!(await isEmpty(project))) return;
          await limits.setOfProject(project, null);
          await erase(project);
          await directory.forget(project);
        }),
    ];
    await attemptEach(steps, 1, (step) => step());
  };
