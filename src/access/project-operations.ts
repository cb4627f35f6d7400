import type { Millis } from "../base/clock.js";
import { done, type Done, refusal, type Refusal } from "../base/errors.js";
import { defaultProject, findProjectId, newProjectId, type ProjectId } from "../base/ids.js";
import { isWanted, pageOf } from "../spec/paging.js";
import { nameIn } from "./name.js";
import { allows } from "./policy.js";
import type { Principal } from "./principal.js";
import { makeProjectLimits, type ProjectLimitPorts } from "./project-limits.js";
import type {
  Project,
  ProjectContents,
  ProjectDirectory,
  ProjectOperations,
  ProjectPatch,
} from "./project.js";

interface ProjectPorts extends Omit<ProjectLimitPorts, "find"> {
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
  ...makeProjectLimits({ ...ports, find: (ref, principal) => findProject(ports, ref, principal) }),
});

/** A key of one project knows of no other, and changes no more of its own than the name. */
const isInScope = (project: ProjectId, { credentialScope, policy }: Principal): boolean =>
  (credentialScope === null || credentialScope === project) &&
  (policy === undefined || allows(policy, "projects:read", { project }));
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
      return refusal("limit_exceeded", {
        message: "The organization has as many projects as it may have",
        reached: { of: "organization", most: ports.maxProjects },
      });
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
    const { id, status, closing } = found.value;
    if (patch.status !== undefined && principal.credentialScope !== null) return ofOrganization;
    const name = patch.name === undefined ? done(undefined) : nameIn(patch.name);
    if (name.kind === "refused") return name;
    const wanted = { ...patch, ...(name.value !== undefined && { name: name.value }) };
    // While somebody else looks into it, it may yet be found to have something.
    const isOpen = status === "active" || closing !== undefined;
    if (patch.status === "archived" && isOpen) return await archive(ports, id, wanted);
    // Nobody has looked whether it may be archived where it was made active again meanwhile.
    const { status: to, ...rest } = wanted;
    const change = to === "active" ? wanted : rest;
    return refusedChange(await ports.directory.change(id, change)) ?? (await reread(ports, id));
  };

async function archive(
  ports: ProjectPorts,
  id: ProjectId,
  { name }: ProjectPatch,
): Promise<Done<Project> | Refusal> {
  const refused = await close(ports, id, { name, why: () => whyRunning(ports, id) });
  if (refused) return refused;
  await ports.directory.settle(id, "archived");
  const found = await reread(ports, id);
  // Others let requests in again since it was looked at.
  return found.kind === "done" && found.value.status === "active" ? refusal("conflict") : found;
}

function refusedChange(changed: Awaited<ReturnType<ProjectDirectory["change"]>>): Refusal | undefined {
  if (changed === "missing") return refusal("project_not_found");
  return changed === "taken" ? refusal("name_taken") : undefined;
}

const whyRunning = async ({ contents }: ProjectPorts, id: ProjectId): Promise<Refusal | undefined> =>
  (await contents.isRunning(id)) ? notEmpty("The project has pools or sessions") : undefined;

async function whyNotEmpty(ports: ProjectPorts, id: ProjectId): Promise<Refusal | undefined> {
  const running = await whyRunning(ports, id);
  if (running) return running;
  return (await ports.contents.hasRegistered(id))
    ? notEmpty("The project has extensions, profiles, proxies, OTLP destinations or vaults")
    : undefined;
}

interface ProjectClosing {
  readonly name?: string | undefined;
  /** Why the project has to stay as it is. */
  why(): Promise<Refusal | undefined>;
}

/** Longer than it takes to look into a project, twice. */
const closingMs: Millis = 60_000;

/**
 * It is looked at once more when nobody is let in any more: something may have begun there since the first
 * look, and no request could reach it. Then it is made again what it was, as it is by a tick where this
 * control dies before it has settled that.
 */
async function close(
  { directory }: ProjectPorts,
  id: ProjectId,
  { name, why }: ProjectClosing,
): Promise<Refusal | undefined> {
  if (id === defaultProject) return refusal("last_active_project");
  const refused =
    (await why()) ??
    refusedChange(await directory.close(id, { limitMs: closingMs, ...(name !== undefined && { name }) }));
  if (refused) return refused;
  const late = await why();
  if (late) await directory.settle(id, "reopened");
  return late;
}

const makeRemove =
  (ports: ProjectPorts): ProjectOperations["remove"] =>
  async (ref, principal) => {
    const found = await findProject(ports, ref, principal);
    if (found.kind === "refused") return found;
    if (principal.credentialScope !== null) return ofOrganization;
    const { id } = found.value;
    const refused = await close(ports, id, { why: () => whyNotEmpty(ports, id) });
    if (refused) return refused;
    const removed = await ports.directory.remove(id);
    // Others let requests in again since it was looked at.
    if (removed === "active") return refusal("conflict");
    return removed === "missing" ? refusal("project_not_found") : done(null);
  };
