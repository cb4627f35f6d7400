import { type Static, Type } from "typebox";
import type { Done, Refusal } from "../base/errors.js";
import type { Millis } from "../base/clock.js";
import { defaultProject, ProjectId } from "../base/ids.js";
import { parserOf } from "../base/parser.js";
import type { Page, Paging } from "../spec/paging.js";
import type { Principal } from "./principal.js";
import type { ProjectLimitOperations } from "./project-limits.js";

const projectStatuses = ["active", "archived"] as const;
const closed = { additionalProperties: false } as const;
const Name = Type.String({ minLength: 1, maxLength: 255 });
/** POST /org/projects (docs/projects.md). */
export const ProjectCreate = Type.Object({ name: Name }, closed);
export const ProjectPatch = Type.Object(
  { name: Type.Optional(Name), status: Type.Optional(Type.Enum([...projectStatuses])) },
  closed,
);
export type ProjectCreate = Static<typeof ProjectCreate>;
export type ProjectPatch = Static<typeof ProjectPatch>;

/** Everything belongs to one project. An archived one can be named in no request. */
const Project = Type.Object({
  id: ProjectId,
  name: Type.String(),
  status: Type.Enum([...projectStatuses]),
  createdAt: Type.Number(),
  updatedAt: Type.Number(),
  /** While it is looked at whether it may be archived or deleted: nobody is let in, and it may come back. */
  closing: Type.Optional(Type.Object({ deadline: Type.Number() })),
});
export type Project = Readonly<Static<typeof Project>>;
export const projectParser = parserOf("the record of a project", Project);

/** The project that was there before there were others, until it is given another name. */
export const firstProject = { id: defaultProject, name: "Default" } as const;

/** Which projects there are; each has a name of its own. */
export interface ProjectDirectory {
  /** `many`: there are as many as there may be. A repeat with the same id changes nothing. */
  create(
    ask: Pick<Project, "id" | "name"> & { readonly most: number },
  ): Promise<"created" | "taken" | "many">;
  find(id: ProjectId): Promise<Project | undefined>;
  findNamed(name: string): Promise<ProjectId | undefined>;
  all(): Promise<readonly Project[]>;
  change(id: ProjectId, patch: ProjectPatch): Promise<"changed" | "missing" | "taken">;
  /**
   * Archives it until it is settled. Where that is not done within the limit, whoever has closed it is gone.
   */
  close(
    id: ProjectId,
    how: Pick<ProjectPatch, "name"> & { readonly limitMs: Millis },
  ): Promise<"changed" | "missing" | "taken">;
  /**
   * Ends its closing. `reopened`: it is again what it was; `overdue`: the same, where the limit is over.
   * `kept`: it is not being closed any more, or that is not overdue.
   */
  settle(id: ProjectId, how: "archived" | "reopened" | "overdue"): Promise<"settled" | "kept">;
  /** `active`: it is not closed, or no longer. */
  remove(id: ProjectId): Promise<"removed" | "missing" | "active">;
  /** Those that have been archived for so long, and are not being looked at. */
  archivedFor(ms: Millis): Promise<readonly ProjectId[]>;
  /** Those that were removed so long ago, and are not forgotten yet. */
  deletedFor(ms: Millis): Promise<readonly ProjectId[]>;
  /** Nothing is looked for any more in one that was removed. */
  forget(id: ProjectId): Promise<void>;
}

interface ProjectListQuery extends Paging {
  readonly name?: string;
  readonly query?: string;
}

/** `ref` is an id or a name; ids win. Every refusal has changed nothing. */
export interface ProjectOperations extends ProjectLimitOperations {
  create(body: ProjectCreate, principal: Principal): Promise<Done<Project> | Refusal>;
  list(query: ProjectListQuery, principal: Principal): Promise<Page<Project>>;
  get(ref: string, principal: Principal): Promise<Done<Project> | Refusal>;
  update(ref: string, patch: ProjectPatch, principal: Principal): Promise<Done<Project> | Refusal>;
  remove(ref: string, principal: Principal): Promise<Done<null> | Refusal>;
}

/** What a project still has; what nobody could give back any more once it is gone. */
export interface ProjectContents {
  /** Pools and sessions, which have browsers. */
  isRunning(project: ProjectId): Promise<boolean>;
  /** Extensions, profiles, proxies and OTLP destinations. */
  hasRegistered(project: ProjectId): Promise<boolean>;
}
