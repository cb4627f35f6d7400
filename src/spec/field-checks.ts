import type { Detail } from "../base/errors.js";
import type { Network, ProxyChoice, Selector } from "./bodies.js";
import { matchesHost, parseHost, parseHostPattern } from "../base/net/hosts.js";

export type FieldFaults = Detail[];
export const fieldFault = (faults: FieldFaults, field: string, what: string): void => {
  faults.push({ code: "invalid_input", message: `${field}: ${what}` });
};

export function checkSelector(faults: FieldFaults, field: string, selector: Selector): void {
  if (Boolean(selector.id) === Boolean(selector.name))
    fieldFault(faults, field, "must have exactly one of id and name");
}

export function checkProxy(faults: FieldFaults, proxy: ProxyChoice): void {
  if (Object.values(proxy).filter(Boolean).length !== 1)
    fieldFault(faults, "proxy", "must have exactly one of mode, id and name");
}

/** A browser must not be sent to the host's files or its own settings. */
const startSchemes = new Set(["http:", "https:", "data:"]);

export function checkStartUrl(faults: FieldFaults, url: string): void {
  if (url === "") return;
  if (!URL.canParse(url)) return fieldFault(faults, "start_url", "is not a URL");
  const { protocol, href } = new URL(url);
  // Other about: pages, such as about:settings, are the browser's own.
  if (!startSchemes.has(protocol) && href !== "about:blank")
    fieldFault(faults, "start_url", "must be an http, https or data URL, or about:blank");
}

/**
 * Reports a start page that the allowlist would not let the browser load. about:blank and data: URLs need no
 * host.
 */
export function checkStartHost(
  faults: FieldFaults,
  startUrl: string | undefined,
  network: Network | undefined,
): void {
  const allowed = (network?.allowed_hosts ?? []).map((host) => parseHostPattern(host, { withRanges: false }));
  const patterns = allowed.flatMap((parsed) => (parsed.kind === "pattern" ? [parsed.pattern] : []));
  // Faults that were reported already are not followed up: an entry at fault might have been meant to match
  // this host.
  if (allowed.length === 0 || patterns.length < allowed.length || !startUrl || !URL.canParse(startUrl))
    return;
  const { protocol, hostname, port } = new URL(startUrl);
  const host = parseHost(hostname)?.host;
  if (protocol !== "http:" && protocol !== "https:") return;
  const target =
    host === undefined ? undefined : { host, port: Number(port) || (protocol === "http:" ? 80 : 443) };
  const isAllowed = target && patterns.some((pattern) => matchesHost(pattern, target));
  if (!isAllowed) fieldFault(faults, "start_url", "is outside network.allowed_hosts");
}

export function checkNetwork(faults: FieldFaults, network: Network): void {
  if (network.allowed_hosts?.length === 0)
    fieldFault(faults, "network.allowed_hosts", "must not be empty when it is sent");
  checkHosts(faults, "network.allowed_hosts", network.allowed_hosts);
  checkHosts(faults, "network.private_hosts", network.private_hosts);
  for (const { hosts: list, proxy } of network.proxy_routes ?? []) {
    checkHosts(faults, "network.proxy_routes.hosts", list);
    checkSelector(faults, "network.proxy_routes.proxy", proxy);
  }
}

/** Reports each entry that is not a pattern. Only private hosts may be ranges. */
function checkHosts(faults: FieldFaults, field: string, list: readonly string[] = []): void {
  for (const host of list) {
    const parsed = parseHostPattern(host, { withRanges: field === "network.private_hosts" });
    // The text before an @ may be a password, so it is not quoted.
    if (parsed.kind === "fault")
      fieldFault(faults, field, `${JSON.stringify(host.replace(/^.*@/s, "…@"))} ${parsed.message}`);
  }
}

/**
 * Gives each pattern's normal form. An `expected_network` may hold texts that are not patterns; those stay as
 * they are.
 */
function hosts(list: readonly string[]): string[] {
  const texts = list.map((host) => {
    const parsed = parseHostPattern(host, { withRanges: true });
    return parsed.kind === "pattern" ? parsed.text : host.trim().toLowerCase();
  });
  return [...new Set(texts)];
}

/**
 * The network as it is stored: trimmed, in lower case, in normal form and without duplicates
 * (docs/api.md#bounds-of-fields).
 */
export function normaliseNetwork(network: Network): Network {
  const { allowed_hosts, private_hosts, proxy_routes } = network;
  return {
    ...(allowed_hosts ? { allowed_hosts: hosts(allowed_hosts) } : {}),
    ...(private_hosts ? { private_hosts: hosts(private_hosts) } : {}),
    ...(proxy_routes
      ? { proxy_routes: proxy_routes.map((route) => ({ ...route, hosts: hosts(route.hosts) })) }
      : {}),
  };
}
