import type { Resource } from "@opentelemetry/resources";
import type { ExportedSession } from "./exported.js";
import { openTelemetry } from "./opentelemetry.js";

const resourceOf = ({ session, lease, project, pool, region, node }: ExportedSession): Resource =>
  openTelemetry().resources.resourceFromAttributes({
    "service.name": "remuda-browser",
    "session.id": session,
    "remuda.lease.id": lease,
    "remuda.project.id": project,
    ...(pool && { "remuda.pool.id": pool.id }),
    ...(pool?.name !== undefined && { "remuda.pool.name": pool.name }),
    "cloud.region": region,
    ...(node !== undefined && { "remuda.node.id": node }),
  });

/** One for each session, since the serializer groups records by it. */
const resources = new WeakMap<ExportedSession, Resource>();
export function resourceFor(session: ExportedSession): Resource {
  const known = resources.get(session);
  if (known) return known;
  const made = resourceOf(session);
  resources.set(session, made);
  return made;
}
