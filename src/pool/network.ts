import type { Lease } from "./browser.js";
import type { ProxyChoice } from "../spec/bodies.js";
import type { LaunchTemplate } from "../spec/launch-template.js";

/** The allowlist in force: the lease's own since a PATCH, else the launch's; null: every public host. */
export function allowedHostsOf(
  { network }: LaunchTemplate,
  lease: Pick<Lease, "network"> | undefined,
): readonly string[] | null {
  const changed = lease?.network?.allowedHosts;
  return changed === undefined ? (network?.allowed_hosts ?? null) : (JSON.parse(changed) as string[] | null);
}

/** The proxy in force for what no route names, by id or by mode; undefined where nobody has chosen. */
export function proxyOf(
  { proxy_id, proxy_mode }: LaunchTemplate,
  lease: Pick<Lease, "network"> | undefined,
): Pick<LaunchTemplate, "proxy_id" | "proxy_mode"> {
  const changed = lease?.network?.proxy;
  if (changed === undefined)
    return { ...(proxy_id !== undefined && { proxy_id }), ...(proxy_mode !== undefined && { proxy_mode }) };
  const { id, mode } = JSON.parse(changed) as ProxyChoice;
  return { ...(id !== undefined && { proxy_id: id }), ...(mode !== undefined && { proxy_mode: mode }) };
}
