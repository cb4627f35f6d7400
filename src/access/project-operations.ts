import { done, type Done, refusal, type Refusal } from "../base/errors.js";
import { defaultProject, findProjectId, newProjectId, type ProjectId } from "../base/ids.js";
import { isWanted, pageOf } from "../spec/paging.js";
import { nameIn } from "./name.js";
import type { Principal } from "./principal.js";
import type { Project, ProjectContents, ProjectDirectory, ProjectOperations } from "./project.js";

export interface ProjectPorts {
  readonly directory: ProjectDirectory;
  readonly contents: ProjectContents;
  readonly maxProjects: number;
}

export const makeProjectOperations = (ports: ProjectPorts): ProjectOperations => ({
  create: makeCreate(ports),
  list: makeList(ports),
  get: (ref, principal) => findProject(ports, ref, principal),
  update: makeUpdate(ports),
  remove: makeRemove(ports),
});

/** A key of one project knows of no other, and changes no more of its own than the name. */
const isInScope = (id: ProjectId, { credentialScope }: Principal): boolean =>
  credentialScope === null || credentialScope === id;
const ofOrganization = refusal("insufficient_scope", {
  message: "A key of one project makes, archives and deletes none",
});
const notEmpty = (message: string): Refusal => refusal("project_not_empty", { message });

async function findProject(
  { directory }: ProjectPorts,
  ref: string,
  principal: Principal,
): Promise<Done<Project> | Refusal> {
  const id = findProjectId(ref);
  const byId = id && (await directory.find(id));
  const named = byId ? undefined : await directory.findNamed(ref);
  const found = byId ?? (named && (await directory.find(named)));
  return found && isInScope(found.id, principal) ? done(found) : refusal("project_not_found");
}

async function reread({ directory }: ProjectPorts, id: ProjectId): Promise<Done<Project> | Refusal> {
  const found = await directory.find(id);
  return found ? done(found) : refusal("project_not_found");
}

const makeCreate =
  (ports: ProjectPorts): ProjectOperations["create"] =>
  async (body, { credentialScope }) => {
    if (credentialScope !== null) return ofOrganization;
    const name = nameIn(body.name);
    if (name.kind === "refused") return name;
    const id = newProjectId();
    const created = await ports.directory.create({ id, name: name.value, most: ports.maxProjects });
    if (created === "many")
      return refusal("limit_exceeded", { message: "There are as many projects as there may be" });
    return created === "taken" ? refusal("name_taken") : await reread(ports, id);
  };

/** The newest first. */
const makeList =
  ({ directory }: ProjectPorts): ProjectOperations["list"] =>
  async (query, principal) => {
    const wanted = (await directory.all()).filter(
      (project) => isInScope(project.id, principal) && isWanted(project, query),
    );
    const sorted = wanted.toSorted(
      (one, other) => other.createdAt - one.createdAt || (one.id < other.id ? -1 : 1),
    );
    return pageOf(sorted, query);
  };

const makeUpdate =
  (ports: ProjectPorts): ProjectOperations["update"] =>
  async (ref, patch, principal) => {
    const found = await findProject(ports, ref, principal);
    if (found.kind === "refused") return found;
    const { id, status } = found.value;
    if (patch.status !== undefined && principal.credentialScope !== null) return ofOrganization;
    const name = patch.name === undefined ? done(undefined) : nameIn(patch.name);
    if (name.kind === "refused") return name;
    const archives = patch.status === "archived" && status === "active";
    const renamed = { ...patch, ...(name.value !== undefined && { name: name.value }) };
    return archives
      ? await archive(ports, id, renamed)
      : changedOr(await ports.directory.change(id, renamed), () => reread(ports, id));
  };

type Changed = Awaited<ReturnType<ProjectDirectory["change"]>>;
async function changedOr<Value>(
  changed: Changed,
  then: () => Promise<Done<Value> | Refusal>,
): Promise<Done<Value> | Refusal> {
  if (changed === "missing") return refusal("project_not_found");
  return changed === "taken" ? refusal("name_taken") : await then();
}

/**
 * Nobody is let into the project any more before it is looked at, so that nothing new begins there; where
 * there is something it is active again. Whoever archives a project leaves no browser behind that no request
 * can reach.
 */
async function archive(
  ports: ProjectPorts,
  id: ProjectId,
  patch: Parameters<ProjectDirectory["change"]>[1],
): Promise<Done<Project> | Refusal> {
  if (id === defaultProject) return refusal("last_active_project");
  return changedOr(await ports.directory.change(id, patch), async () => {
    if (!(await ports.contents.isRunning(id))) return await reread(ports, id);
    await ports.directory.change(id, { status: "active" });
    return notEmpty("The project has pools or sessions");
  });
}

const makeRemove =
  (ports: ProjectPorts): ProjectOperations["remove"] =>
  async (ref, principal) => {
    const found = await findProject(ports, ref, principal);
    if (found.kind === "refused") return found;
    if (principal.credentialScope !== null) return ofOrganization;
    const { id, status } = found.value;
    if (id === defaultProject) return refusal("last_active_project");
    if (status === "active") {
      const archived = await archive(ports, id, { status: "archived" });
      if (archived.kind === "refused") return archived;
    }
    if (await ports.contents.hasRegistered(id)) {
      await ports.directory.change(id, { status });
      return notEmpty("The project has extensions, profiles or proxies");
    }
    return (await ports.directory.remove(id)) === "missing" ? refusal("project_not_found") : done(null);
  };
