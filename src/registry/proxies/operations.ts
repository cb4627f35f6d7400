import { done, type Done, refusal, type Refusal } from "../../base/errors.js";
import { findProxyId, newProxyId, type ProxyId } from "../../base/ids.js";
import type { Log } from "../../base/log.js";
import { openSealed, type Seal } from "../../base/crypto/seal.js";
import { Secret } from "../../base/crypto/secret.js";
import { type Page, pageOf, type Paging } from "../../spec/paging.js";
import type { FieldFaults } from "../../spec/field-checks.js";
import { parseHostPattern } from "../../base/net/hosts.js";
import type { PoolStore } from "../../pool/ports/pool-store.js";
import type { ProjectStore } from "../../pool/ports/project-store.js";
import { refuseInUse } from "../in-use.js";
import {
  type Proxy,
  type ProxyFinding,
  type ProxyOperations,
  type ProxySecrets,
  proxySecretsParser,
  type ProxyStore,
  type Upstream,
} from "./proxy.js";
import { checkText, parseProxy, type ProxyPlace } from "./fields.js";

/** What a check was asked for cannot be tried; or what it found. */
export type ProbeReply =
  | { readonly kind: "probed"; readonly found: ProxyFinding }
  | { readonly kind: "forbidden"; readonly message: string };

interface ProxyRecords {
  readonly store: ProxyStore;
  readonly seal: Seal;
}
interface ProxyPorts extends ProxyRecords {
  readonly poolStore: PoolStore;
  readonly projects: ProjectStore;
  readonly maxProxies: number;
  readonly log: Log;
  /** Why no proxy may be at a place, to be read after the field's name; undefined where it may. */
  whyClosed(place: ProxyPlace): string | undefined;
  /**
   * Sends one request through the proxy, to the operator's own URL where none is asked for; ends within a
   * limit of its own.
   */
  probe(upstream: Upstream, url: string | undefined, signal: AbortSignal): Promise<ProbeReply>;
}

export const makeProxyOperations = (ports: ProxyPorts): ProxyOperations => ({
  create: makeCreate(ports),
  list: (paging) => (paging.sees ? pageSeen(ports, paging, paging.sees) : ports.store.page(paging)),
  get: (ref) => found(ports, findProxyId(ref)),
  async rename(ref, { name }) {
    const faults: FieldFaults = [];
    checkText(faults, "name", name);
    if (faults.length > 0) return refusal("bad_request", { details: faults });
    const id = findProxyId(ref);
    const outcome = id ? await ports.store.rename(id, name) : "missing";
    return outcome === "missing" ? refusal("proxy_not_found") : await found(ports, id);
  },
  remove: makeRemove(ports),
  check: makeCheck(ports),
});

/** A page of those that the caller may see, which are counted before they are paged. */
async function pageSeen(
  { store }: ProxyRecords,
  paging: Paging,
  sees: NonNullable<Paging["sees"]>,
): Promise<Page<Proxy>> {
  const seen: Proxy[] = [];
  for (let offset = 0, hasMore = true; hasMore;) {
    const page = await store.page({ limit: readAtOnce, offset });
    seen.push(...page.items.filter(sees));
    [offset, hasMore] = [offset + readAtOnce, page.hasMore];
  }
  return pageOf(seen, paging);
}
const readAtOnce = 100;

async function found({ store }: ProxyRecords, id: ProxyId | undefined): Promise<Done<Proxy> | Refusal> {
  const proxy = id && (await store.find(id));
  return proxy ? done(proxy) : refusal("proxy_not_found");
}

const makeCreate =
  (ports: ProxyPorts): ProxyOperations["create"] =>
  async (body) => {
    const parsed = parseProxy(body, ports.whyClosed);
    if (parsed.kind === "refused") return parsed;
    const { secrets, ...rest } = parsed.value;
    const id = newProxyId(ports.projects.project);
    const sealed =
      Object.keys(secrets).length > 0 ? { sealed: ports.seal.close(JSON.stringify(secrets), id) } : {};
    const created = await ports.store.create({ id, ...rest, ...sealed, most: ports.maxProxies });
    return created === "many"
      ? refusal("limit_exceeded", {
          message: "The project has as many proxies as it may have",
          reached: { of: "project", most: ports.maxProxies },
        })
      : await found(ports, id);
  };

/**
 * Refused while a pool names it; sessions keep what they were launched with. A pool that comes to name it at
 * this very moment is left with a proxy that is gone: its launches fail and say so, none goes out another
 * way.
 */
const makeRemove =
  ({ store, poolStore, projects }: ProxyPorts): ProxyOperations["remove"] =>
  async (ref) => {
    const id = findProxyId(ref);
    if (!id || !(await store.find(id))) return refusal("proxy_not_found");
    const inUse = await refuseInUse({ poolStore, projects }, "Pools name this proxy", id);
    if (inUse) return inUse;
    return (await store.remove(id)) === "missing" ? refusal("proxy_not_found") : done(null);
  };

/** A proxy that carries nothing was checked with success: it is unavailable. */
const makeCheck =
  (ports: ProxyPorts): ProxyOperations["check"] =>
  async (ref, { url }, gone) => {
    const id = findProxyId(ref);
    const upstream = id && (await openUpstream(ports, id));
    if (!id || !upstream) return refusal("proxy_not_found");
    const probed = await ports.probe(upstream, url, gone);
    // The check was given up, so nothing was found out about the proxy.
    if (gone.aborted) return refusal("unavailable");
    if (probed.kind === "forbidden")
      return refusal("bad_request", {
        details: [{ code: "invalid_input", message: `url: ${probed.message}` }],
      });
    ports.log.info({ proxy: id, status: probed.found.status }, "proxy checked");
    const noted = await ports.store.noteCheck(id, probed.found);
    return noted === "missing" ? refusal("proxy_not_found") : await found(ports, id);
  };

/**
 * Opens a proxy for whoever sends requests on through it; undefined: there is no such proxy. Throws
 * `secret_unreadable` where its secrets do not open.
 */
export async function openUpstream(
  { store, seal }: ProxyRecords,
  id: ProxyId,
): Promise<Upstream | undefined> {
  const [proxy, sealed] = await Promise.all([store.find(id), store.findSealed(id)]);
  if (!proxy) return undefined;
  const { protocol, host, port, username, bypassHosts } = proxy;
  const { password, caBundle } = sealed === undefined ? {} : unsealed(seal, sealed, id);
  return {
    id,
    protocol,
    host,
    port,
    bypass: bypassHosts.flatMap(patternsOf),
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password: new Secret(password) }),
    ...(caBundle === undefined ? {} : { caBundle }),
  };
}

function unsealed(seal: Seal, sealed: string, id: ProxyId): ProxySecrets {
  const what = `The secrets of proxy ${id}`;
  return proxySecretsParser.json(
    openSealed(seal, { sealed, owner: id, what, remedy: "create the proxy anew" }),
  );
}

function patternsOf(text: string) {
  const parsed = parseHostPattern(text, { withRanges: false });
  return parsed.kind === "pattern" ? [parsed.pattern] : [];
}
