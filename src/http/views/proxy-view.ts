import type { Proxy } from "../../registry/proxies/proxy.js";
import type { ProxyReply } from "../schemas/replies.js";

/** A proxy as docs/egress.md#proxies has it: of its secrets only that there are some. */
export const proxyView = ({ id, name, protocol, bypassHosts, checked, ...own }: Proxy): ProxyReply => ({
  id,
  ...(name !== undefined && { name }),
  type: "custom",
  protocol,
  bypass_hosts: [...bypassHosts],
  config: {
    host: own.host,
    port: own.port,
    ...(own.username !== undefined && { username: own.username }),
    has_password: own.hasPassword,
    has_ca_bundle: own.hasCaBundle,
  },
  ...(checked && { status: checked.status, last_checked: new Date(checked.at).toISOString() }),
  ...(checked?.ipAddress !== undefined && { ip_address: checked.ipAddress }),
});
