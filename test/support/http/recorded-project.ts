import type { Project } from "../../../src/access/project.js";
import type { ProjectLimits } from "../../../src/access/project-limits.js";
import type { ProjectId } from "../../../src/base/ids.js";

export const project: Project = {
  id: "blueblueblue" as ProjectId,
  name: "blue",
  status: "active",
  createdAt: 1_700_000_000_000,
  updatedAt: 1_700_000_000_000,
};

export const projectLimits: ProjectLimits = { concurrentSessions: 5 };
