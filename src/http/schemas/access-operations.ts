import { noContent, onePage, type Operation, reply } from "./operation.js";

const apiKeys = "API Keys";
const projects = "Projects";
const project = (description: string) => reply(200, "Project", description);
const organization = "Organization";
const limits = (description: string) => reply(200, "OrganizationLimits", description);
const ofProject = (description: string) => reply(200, "ProjectLimits", description);
const apiKey = (description: string) => reply(200, "ApiKey", description);
const created = (description: string) => reply(201, "CreatedApiKey", description);

/** Who may do what. */
export const accessOperations = {
  listApiKeys: { tag: apiKeys, summary: "List API keys", success: onePage("ApiKey") },
  createApiKey: {
    tag: apiKeys,
    summary: "Create an API key; its text is told this once",
    takesBody: true,
    success: created("The new key"),
    failures: ["audit_unavailable", "idempotency_mismatch", "limit_exceeded"],
  },
  getApiKey: {
    tag: apiKeys,
    summary: "Read an API key, masked",
    success: apiKey(
      "The key; the header `X-Remuda-Last-Used-At` says when it was let in last, to about a minute",
    ),
    failures: ["not_found"],
  },
  renameApiKey: {
    tag: apiKeys,
    summary: "Call an API key otherwise",
    takesBody: true,
    success: apiKey("The key as it is now"),
    failures: ["audit_unavailable", "not_found"],
  },
  deleteApiKey: {
    tag: apiKeys,
    summary: "Delete an API key; the next request that shows it is refused",
    takesBody: true,
    success: noContent("It lets nobody in any more"),
    failures: ["audit_unavailable", "cannot_delete_current_key", "not_found"],
  },
  rotateApiKey: {
    tag: apiKeys,
    summary: "Create a key that may do what another may, which expires after a grace",
    takesBody: true,
    success: created("The new key"),
    failures: ["audit_unavailable", "idempotency_mismatch", "limit_exceeded", "not_found"],
  },
  listProjects: { tag: projects, summary: "List projects, newest first", success: onePage("Project") },
  createProject: {
    tag: projects,
    summary: "Create a project",
    takesBody: true,
    success: reply(201, "Project", "The new project"),
    failures: ["audit_unavailable", "insufficient_scope", "limit_exceeded", "name_taken"],
  },
  getProject: { tag: projects, summary: "Read a project", success: project("The project") },
  updateProject: {
    tag: projects,
    summary: "Call a project otherwise, archive it, or make it active again",
    takesBody: true,
    success: project("The project as it is now"),
    failures: [
      "audit_unavailable",
      "insufficient_scope",
      "last_active_project",
      "name_taken",
      "project_not_empty",
    ],
  },
  deleteProject: {
    tag: projects,
    summary: "Delete an empty project",
    takesBody: true,
    success: noContent("It is deleted"),
    failures: ["audit_unavailable", "insufficient_scope", "last_active_project", "project_not_empty"],
  },
  getProjectLimits: {
    tag: projects,
    summary: "Read a project's own limits",
    success: ofProject("Its limits; null where it has none of its own"),
  },
  updateProjectLimits: {
    tag: projects,
    summary: "Set a project's own limit of concurrent sessions",
    takesBody: true,
    success: ofProject("Its limits as they are now"),
    failures: ["audit_unavailable", "insufficient_scope"],
  },
  getOrganizationLimits: {
    tag: organization,
    summary: "Read the organization's limits, and how much of them is used",
    success: limits("The limits; null where there is none"),
  },
  updateOrganizationLimits: {
    tag: organization,
    summary: "Set the limit of every project that has none of its own",
    takesBody: true,
    success: limits("The limits as they are now"),
    failures: ["audit_unavailable", "insufficient_scope", "conflict"],
  },
  getEntitlements: {
    tag: organization,
    summary: "Read what this deployment offers",
    success: reply(200, "Entitlements", "Features, and as much of them as there may be"),
  },
} as const satisfies Record<string, Operation>;
