import { Type } from "typebox";
import { parserOf } from "../base/parser.js";
import type { Lease } from "./browser.js";
import { ProxyChoice } from "../spec/bodies.js";
import type { LaunchTemplate } from "../spec/launch-template.js";

const allowedHostsParser = parserOf(
  "the allowed hosts of a lease",
  Type.Union([Type.Array(Type.String()), Type.Null()]),
);
const proxyChoiceParser = parserOf("the proxy of a lease", ProxyChoice);

/** The allowlist in force: the lease's own since a PATCH, else the launch's; null: every public host. */
export function allowedHostsOf(
  { network }: LaunchTemplate,
  lease: Pick<Lease, "network"> | undefined,
): readonly string[] | null {
  const changed = lease?.network?.allowedHosts;
  return changed === undefined ? (network?.allowed_hosts ?? null) : allowedHostsParser.json(changed);
}

/** The proxy in force for what no route names, by id or by mode; undefined where nobody has chosen. */
export function proxyOf(
  { proxy_id, proxy_mode }: LaunchTemplate,
  lease: Pick<Lease, "network"> | undefined,
): Pick<LaunchTemplate, "proxy_id" | "proxy_mode"> {
  const changed = lease?.network?.proxy;
  if (changed === undefined)
    return { ...(proxy_id !== undefined && { proxy_id }), ...(proxy_mode !== undefined && { proxy_mode }) };
  const { id, mode } = proxyChoiceParser.json(changed);
  return { ...(id !== undefined && { proxy_id: id }), ...(mode !== undefined && { proxy_mode: mode }) };
}
