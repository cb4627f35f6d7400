import { type Static, Type } from "typebox";
import type { Millis } from "../../base/clock.js";
import type { Done, Refusal } from "../../base/errors.js";
import type { ProxyId } from "../../base/ids.js";
import type { Secret } from "../../base/crypto/secret.js";
import { parserOf, readonlyList } from "../../base/parser.js";
import type { HostPattern } from "../../base/net/hosts.js";
import type { Page, Paging } from "../../spec/paging.js";

export const proxyBounds = {
  nameLength: 255,
  hostLength: 253,
  /** RFC 1929 gives a user name and a password of SOCKS5 255 bytes each. */
  credentialLength: 255,
  caBundleBytes: 64 * 1024,
  bypassHosts: 100,
} as const;

export const proxyTypes = ["custom", "datacenter", "isp", "residential", "mobile"] as const;
/** socks5 is our addition. */
export const proxyProtocols = ["http", "https", "socks5"] as const;
type ProxyProtocol = (typeof proxyProtocols)[number];

const closed = { additionalProperties: false } as const;
const text = (maxLength: number) => Type.Optional(Type.String({ minLength: 1, maxLength }));
/** Fields of the kinds that need a vendor: known, so that what is refused is the kind. */
const vendorFields = ["asn", "city", "country", "os", "state", "zip"] as const;

const ProxyConfig = Type.Object(
  {
    host: text(proxyBounds.hostLength),
    port: Type.Optional(Type.Integer({ minimum: 1, maximum: 65_535 })),
    username: text(proxyBounds.credentialLength),
    password: text(proxyBounds.credentialLength),
    ca_bundle: text(proxyBounds.caBundleBytes),
    ...(Object.fromEntries(vendorFields.map((field) => [field, text(255)])) as Record<
      (typeof vendorFields)[number],
      ReturnType<typeof text>
    >),
  },
  closed,
);
/** POST /proxies (docs/egress.md#proxies). */
export const ProxyCreate = Type.Object(
  {
    type: Type.Enum([...proxyTypes]),
    name: text(proxyBounds.nameLength),
    protocol: Type.Optional(Type.Enum([...proxyProtocols])),
    bypass_hosts: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: proxyBounds.hostLength }), {
        maxItems: proxyBounds.bypassHosts,
      }),
    ),
    config: Type.Optional(ProxyConfig),
  },
  closed,
);
export const ProxyPatch = Type.Object(
  { name: Type.String({ minLength: 1, maxLength: proxyBounds.nameLength }) },
  closed,
);
export const ProxyCheckBody = Type.Object({ url: text(2048) }, closed);
export type ProxyCreate = Static<typeof ProxyCreate>;
export type ProxyPatch = Static<typeof ProxyPatch>;
export type ProxyCheckBody = Static<typeof ProxyCheckBody>;

/** What there is to know of a proxy, but for its secrets. */
const ProxyRecord = Type.Object({
  protocol: Type.Enum([...proxyProtocols]),
  /** A name in ASCII, or an address. */
  host: Type.String(),
  port: Type.Number(),
  username: Type.Optional(Type.String()),
  hasPassword: Type.Boolean(),
  hasCaBundle: Type.Boolean(),
  /** Patterns in their normal form. */
  bypassHosts: readonlyList(Type.String()),
});
export type ProxyRecord = Readonly<Static<typeof ProxyRecord>>;
export const proxyRecordParser = parserOf("the record of a proxy", ProxyRecord);

/** What is kept sealed; `caBundle` is PEM. */
const ProxySecrets = Type.Object({
  password: Type.Optional(Type.String()),
  caBundle: Type.Optional(Type.String()),
});
export type ProxySecrets = Readonly<Static<typeof ProxySecrets>>;
export const proxySecretsParser = parserOf("the secrets of a proxy", ProxySecrets);

/**
 * What a check found: whether the proxy carried a request, and the address it came from, where the answer
 * told.
 */
const ProxyFinding = Type.Object({
  status: Type.Enum(["available", "unavailable"]),
  ipAddress: Type.Optional(Type.String()),
});
export type ProxyFinding = Readonly<Static<typeof ProxyFinding>>;
export const proxyFindingParser = parserOf("the check of a proxy", ProxyFinding);

/** A proxy of the registry. Names are labels and need not be unique. */
export interface Proxy extends ProxyRecord {
  readonly id: ProxyId;
  readonly name?: string;
  /** Absent until the first check; `at` in Redis's time. */
  readonly checked?: ProxyFinding & { readonly at: Millis };
}

/** A proxy with its secrets open: what requests go on through. */
export interface Upstream {
  readonly id: string;
  readonly protocol: ProxyProtocol;
  readonly host: string;
  readonly port: number;
  readonly username?: string;
  readonly password?: Secret;
  readonly caBundle?: string;
  /** Hosts that are reached directly. */
  readonly bypass: readonly HostPattern[];
}

/** Keeps proxies. */
export interface ProxyStore {
  /** `many`: there are as many as there may be. A repeat with the same id changes nothing. */
  create(ask: {
    id: ProxyId;
    record: ProxyRecord;
    name?: string;
    sealed?: string;
    most: number;
  }): Promise<"created" | "many">;
  find(id: ProxyId): Promise<Proxy | undefined>;
  /** The newest come first. */
  page(paging: Paging): Promise<Page<Proxy>>;
  /** The ids of all proxies that have exactly this name. */
  idsNamed(name: string): Promise<readonly ProxyId[]>;
  findSealed(id: ProxyId): Promise<string | undefined>;
  rename(id: ProxyId, name: string): Promise<"changed" | "missing">;
  /** The store stamps it with Redis's time. */
  noteCheck(id: ProxyId, found: ProxyFinding): Promise<"changed" | "missing">;
  remove(id: ProxyId): Promise<"removed" | "missing">;
}

/**
 * What the operations of /proxies do; a `ref` that is no id names nothing. Every refusal has changed nothing.
 */
export interface ProxyOperations {
  create(body: ProxyCreate): Promise<Done<Proxy> | Refusal>;
  list(paging: Paging): Promise<Page<Proxy>>;
  get(ref: string): Promise<Done<Proxy> | Refusal>;
  rename(ref: string, patch: ProxyPatch): Promise<Done<Proxy> | Refusal>;
  remove(ref: string): Promise<Done<null> | Refusal>;
  /** Aborting `gone` ends a check that is under way. */
  check(ref: string, body: ProxyCheckBody, gone: AbortSignal): Promise<Done<Proxy> | Refusal>;
}
