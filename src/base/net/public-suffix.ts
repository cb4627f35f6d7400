import { getDomain } from "tldts";

/**
 * Whether a host is a registrable domain, or below one: below `com`, `co.uk` or `github.io` anybody may have
 * a name (publicsuffix.org, both of its sections). Names that no list knows are taken as two labels.
 */
export const isRegistrable = (host: string): boolean =>
  getDomain(host, { allowPrivateDomains: true, detectIp: false, extractHostname: false }) !== null;
