import type { Entitlements } from "../../access/entitlements.js";
import {
  type LimitOperations,
  type OrganizationLimits,
  OrganizationLimitsPatch,
} from "../../access/organization-limits.js";
import type { App } from "../bare-app.js";
import { recordedFirst } from "../audit.js";
import { principalOf } from "../admission/caller.js";
import { sendRefusal } from "../errors.js";
import type { OrganizationLimitsReply } from "../schemas/access-replies.js";
import { operations } from "../schemas/operations.js";

interface Deps {
  readonly limits: LimitOperations;
  readonly entitlements: Entitlements;
}

/** docs/limits.md#operations. */
export function addLimits(app: App, { limits, entitlements }: Deps): void {
  app.get("/org/limits", { schema: operations.getOrganizationLimits }, async (request) =>
    view(await limits.read(principalOf(request))),
  );
  app.patch(
    "/org/limits",
    { ...recordedFirst, schema: { ...operations.updateOrganizationLimits, body: OrganizationLimitsPatch } },
    async (request, reply) => {
      const got = await limits.update(request.body, principalOf(request));
      return got.kind === "refused" ? sendRefusal(reply, got) : reply.send(view(got.value));
    },
  );
  app.get("/org/entitlements", { schema: operations.getEntitlements }, async () => entitlements);
}

/** Managed logins are not built: there is none, and none may be made. */
const notBuilt = {
  auth_connections_used: 0,
  max_auth_connections: 0,
  min_health_check_interval_seconds: 0,
} as const;

const view = ({
  concurrentSessions,
  ofEachProject,
  usedSessions,
  usedVaults,
}: OrganizationLimits): OrganizationLimitsReply => ({
  max_concurrent_sessions: concurrentSessions,
  default_project_max_concurrent_sessions: ofEachProject,
  concurrent_sessions_used: usedSessions,
  concurrent_sessions_available:
    concurrentSessions === null || usedSessions === null
      ? null
      : Math.max(0, concurrentSessions - usedSessions),
  vaults_used: usedVaults,
  // Each project has a limit of its own, the organization none.
  max_vaults: null,
  ...notBuilt,
});
