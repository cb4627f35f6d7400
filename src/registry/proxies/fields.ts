import { X509Certificate } from "node:crypto";
import { type Done, done, type Refusal, refusal } from "../../base/errors.js";
import { fieldFault, type FieldFaults } from "../../spec/field-checks.js";
import { parseHost, parseHostPattern } from "../../base/net/hosts.js";
import { proxyBounds, type ProxyCreate, type ProxyRecord, type ProxySecrets } from "./proxy.js";

export interface ParsedProxy {
  readonly record: ProxyRecord;
  readonly secrets: ProxySecrets;
  readonly name?: string;
}

type ProxyFields = NonNullable<ProxyCreate["config"]>;

export interface ProxyPlace {
  readonly host: string;
  readonly port: number;
}

/**
 * A new proxy as it is kept, or every fault of the body; the kinds that need a vendor are not supported.
 * `whyClosed` says what is wrong with a place, to be read after the field's name.
 */
export function parseProxy(
  { type, name, protocol = "https", bypass_hosts = [], config = {} }: ProxyCreate,
  whyClosed: (place: ProxyPlace) => string | undefined,
): Done<ParsedProxy> | Refusal {
  if (type !== "custom")
    return refusal("not_supported", {
      message: `A ${type} proxy needs a vendor; only custom proxies are built`,
    });
  const faults: FieldFaults = [];
  if (name !== undefined) checkText(faults, "name", name);
  const { host: _host, port: _port, username, password, ca_bundle, ...ofVendors } = config;
  for (const field of Object.keys(ofVendors))
    fieldFault(faults, `config.${field}`, "is not a field of custom proxies");
  const place = checkPlace(faults, config);
  const closed = place && whyClosed(place);
  if (closed !== undefined) fieldFault(faults, "config.host", closed);
  checkCredentials(faults, protocol, config);
  checkBundle(faults, protocol, ca_bundle);
  const bypassHosts = checkBypass(faults, bypass_hosts);
  if (faults.length > 0 || !place) return refusal("bad_request", { details: faults });
  return done({
    record: {
      protocol,
      ...place,
      ...(username === undefined ? {} : { username }),
      hasPassword: password !== undefined,
      hasCaBundle: ca_bundle !== undefined,
      bypassHosts,
    },
    secrets: {
      ...(password === undefined ? {} : { password }),
      ...(ca_bundle === undefined ? {} : { caBundle: ca_bundle }),
    },
    ...(name === undefined ? {} : { name }),
  });
}

function checkPlace(faults: FieldFaults, { host, port }: ProxyFields): ProxyPlace | undefined {
  const parsed = host === undefined ? undefined : parseHost(host);
  if (host === undefined) fieldFault(faults, "config.host", "is required");
  else if (!parsed)
    fieldFault(
      faults,
      "config.host",
      "must be a host name or an address, without a scheme, a port or a path",
    );
  if (port === undefined) fieldFault(faults, "config.port", "is required");
  return parsed && port !== undefined ? { host: parsed.host, port } : undefined;
}

function checkCredentials(
  faults: FieldFaults,
  protocol: ProxyRecord["protocol"],
  { username, password }: ProxyFields,
): void {
  if (password !== undefined && username === undefined)
    fieldFault(faults, "config.password", "requires a username");
  for (const [field, value] of Object.entries({ username, password })) {
    if (value === undefined) continue;
    checkText(faults, `config.${field}`, value);
    // Characters of other scripts have several bytes each.
    if (Buffer.byteLength(value) > proxyBounds.credentialLength)
      fieldFault(faults, `config.${field}`, `must have at most ${proxyBounds.credentialLength} bytes`);
  }
  // The first colon of Basic credentials ends the user name (RFC 7617, 2).
  if (protocol !== "socks5" && username?.includes(":"))
    fieldFault(faults, "config.username", "must not have a colon");
}

/** A line break in a credential would end the header it is sent in. */
export function checkText(faults: FieldFaults, field: string, value: string): void {
  if (/\p{Cc}/u.test(value)) fieldFault(faults, field, "must not have control characters");
}

function checkBundle(
  faults: FieldFaults,
  protocol: ProxyRecord["protocol"],
  bundle: string | undefined,
): void {
  if (bundle === undefined) return;
  if (protocol !== "https") fieldFault(faults, "config.ca_bundle", "requires protocol https");
  if (Buffer.byteLength(bundle) > proxyBounds.caBundleBytes)
    return fieldFault(faults, "config.ca_bundle", `must have at most ${proxyBounds.caBundleBytes} bytes`);
  const found = findBundleFault(bundle);
  if (found !== undefined) fieldFault(faults, "config.ca_bundle", found);
}

function checkBypass(faults: FieldFaults, hosts: readonly string[]): string[] {
  const texts = hosts.map((host, at) => {
    const parsed = parseHostPattern(host, { withRanges: false });
    if (parsed.kind === "pattern") return parsed.text;
    fieldFault(faults, `bypass_hosts[${at}]`, parsed.message);
    return host;
  });
  return [...new Set(texts)];
}

const pemBlock = /-----BEGIN ([A-Z0-9 ]+)-----[\s\S]*?-----END \1-----/g;

/**
 * What is wrong with a bundle of certificates in PEM, to be read after its field's name; text between the
 * blocks is a comment.
 */
function findBundleFault(bundle: string): string | undefined {
  const blocks = [...bundle.matchAll(pemBlock)];
  if (blocks.length === 0) return "must have a certificate in PEM";
  if (blocks.some(([, label]) => label !== "CERTIFICATE")) return "must have nothing but certificates";
  const place = blocks.findIndex(([block]) => !isCertificate(block));
  return place === -1 ? undefined : `has a certificate that cannot be read, number ${place + 1}`;
}

function isCertificate(block: string): boolean {
  try {
    return new X509Certificate(block).raw.length > 0;
  } catch {
    return false;
  }
}
