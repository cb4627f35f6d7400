import { type Static, Type } from "typebox";
import type { Detail } from "../base/errors.js";
import type { ProjectId } from "../base/ids.js";
import { readonlyList } from "../base/parser.js";

const kinds = ["browsers", "profiles", "vaults", "proxies"] as const;
export type GuardedKind = (typeof kinds)[number];
/** Everything that a policy may allow (docs/access.md#policies). */
export const actions = [
  "browsers:create",
  "browsers:use",
  "browsers:write",
  "browsers:delete",
  ...(["profiles", "vaults", "proxies"] as const).flatMap(
    (kind) => [`${kind}:create`, `${kind}:read`, `${kind}:use`, `${kind}:write`, `${kind}:delete`] as const,
  ),
  "projects:read",
  "organizations:read",
] as const;
export type Action = (typeof actions)[number];

/** One permission: an action, and what it may be done to. */
const Statement = Type.Object({ action: Type.String(), resource: Type.String() });
/** What a key may do: nothing that no statement allows. */
export const Policy = Type.Object({ statements: readonlyList(Statement) });
export type Policy = Readonly<Static<typeof Policy>>;

/** A policy as a request states it: one that is empty would be a key for nothing. */
export const PolicyBody = Type.Object(
  {
    statements: Type.Array(
      Type.Object(
        {
          action: Type.Enum([...actions]),
          resource: Type.String({
            maxLength: 300,
            description:
              "organizations/{id}/*, projects/{id}/*, or projects/{id}/{kind}/{id} of browsers, profiles, vaults or proxies",
          }),
        },
        { additionalProperties: false },
      ),
      { minItems: 1, maxItems: 100 },
    ),
  },
  { additionalProperties: false },
);
type PolicyBody = Static<typeof PolicyBody>;

/** The one organization of a deployment. */
export const organization = "default";
const wholeOrganization = `organizations/${organization}/*`;

/** What an action is done to: one thing of a project, or the project where none is named. */
interface ActionTarget {
  readonly project: ProjectId;
  readonly thing?: { readonly kind: GuardedKind; readonly id: string };
}

/** Whether any statement allows the action there. */
export function allows({ statements }: Policy, action: Action, { project, thing }: ActionTarget): boolean {
  const whole = `projects/${project}/*`;
  const own = thing && `projects/${project}/${thing.kind}/${thing.id}`;
  return statements.some(
    ({ action: given, resource }) =>
      given === action && (resource === wholeOrganization || resource === whole || resource === own),
  );
}

/** Whether any statement allows anything to be done with the thing: its existence is no secret then. */
export const knowsOf = (
  policy: Policy,
  project: ProjectId,
  thing: NonNullable<ActionTarget["thing"]>,
): boolean =>
  actions.some((action) => action.startsWith(`${thing.kind}:`) && allows(policy, action, { project, thing }));

/** What has to be known to tell whether a statement names what there is. */
export interface PolicyTargets {
  hasProject(id: string): Promise<boolean>;
  has(project: ProjectId, kind: GuardedKind, id: string): Promise<boolean>;
}

/**
 * What is wrong with a policy for a key of this scope. Every resource has to lie within the scope, and each
 * thing that is named has to be there: ids are never given twice, so that a grant means this thing only.
 */
export async function policyFaults(
  { statements }: PolicyBody,
  scope: ProjectId | null,
  targets: PolicyTargets,
): Promise<readonly Detail[]> {
  const found = await Promise.all(
    statements.map(async (statement) => await statementFault(statement, scope, targets)),
  );
  return found.flatMap((fault, at) =>
    fault === undefined
      ? []
      : [{ code: "invalid_input", message: `policy.statements[${at}].resource: ${fault}` }],
  );
}

async function statementFault(
  { action, resource }: PolicyBody["statements"][number],
  scope: ProjectId | null,
  targets: PolicyTargets,
): Promise<string | undefined> {
  const [kind, verb] = action.split(":");
  if (resource.startsWith("organizations/")) {
    if (resource !== wholeOrganization) return knownForms;
    return scope === null ? undefined : "is wider than the key's project";
  }
  if (kind === "organizations") return `${action} is granted on ${wholeOrganization} only`;
  const [, project = "", named, id = ""] =
    /^projects\/([^/*]+)\/(?:\*|(browsers|profiles|vaults|proxies)\/([^/*]+))$/.exec(resource) ?? [];
  if (project === "") return knownForms;
  if (scope !== null && scope !== project) return "is outside the key's project";
  if (!(await targets.hasProject(project)))
    return "names no project that there is; projects go by their ids here";
  if (named === undefined) return undefined;
  if (verb === "create") return `${action} is granted in a project or the organization, not on one thing`;
  if (named !== kind) return `${action} is not granted on ${named}`;
  return (await targets.has(project as ProjectId, named as GuardedKind, id))
    ? undefined
    : `is none of the project's ${named}, which go by their ids here`;
}
const knownForms =
  `must be ${wholeOrganization}, projects/{id}/* or projects/{id}/{kind}/{id}, ` +
  `where the kind is one of ${kinds.join(", ")}`;
