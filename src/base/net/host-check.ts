/** Only processes of this machine reach a loopback address. */
export const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || /^127(?:\.\d+){3}$/.test(host);

/** A Host header's name or address: without port, brackets and the dot at its end, in lower case. */
const nameIn = (header: string): string =>
  (/^(\[[^\]]*\]|[^:]*)(?::\d*)?$/.exec(header.trim().toLowerCase())?.[1] ?? "").replaceAll(
    /^\[|\]$|\.$/g,
    "",
  );

const isHost = (name: string): boolean => name.length === 4 && name.toLowerCase() === "host";

/**
 * RFC 9112, 3.2: more than one is answered with 400. Node.js gives the first, and a proxy before it may have
 * read the other.
 */
export function hasTwoHosts({ rawHeaders }: { readonly rawHeaders: readonly string[] }): boolean {
  let count = 0;
  // Names and values take turns. Not by headersDistinct, which sorts all headers of each request into lists.
  for (let at = 0; at < rawHeaders.length; at += 2) if (isHost(rawHeaders[at] ?? "")) count += 1;
  return count > 1;
}

export interface HostCheck {
  /**
   * Whether a request with this Host header is for this daemon. HTTP/1.0 may bring none, which no browser
   * speaks.
   */
  admits(header: string | undefined): boolean;
  /** Whether it came to a loopback address by a loopback name, as only this machine's own programs do. */
  isLocal(header: string | undefined): boolean;
}

/**
 * A page whose own name was made to resolve to 127.0.0.1 (DNS rebinding) reaches what listens on loopback as
 * its own origin, and is told by nothing but the Host header, which is then that name. `urls`: under which
 * this daemon is known besides. Where others can connect any name may lead here, and the key is what
 * protects.
 */
export function makeHostCheck({
  host,
  urls,
}: {
  readonly host: string;
  readonly urls: readonly (string | null | undefined)[];
}): HostCheck {
  const known = new Set(urls.flatMap((url) => (url ? [nameIn(new URL(url).host)] : [])));
  const isOnLoopback = isLoopback(host);
  const isKnown = (name: string): boolean => isLoopback(name) || known.has(name);
  // Nearly all requests bring the header of the one before.
  let admitted: string | undefined;
  const admits = (header: string): boolean => {
    if (header !== admitted && !isKnown(nameIn(header))) return false;
    admitted = header;
    return true;
  };
  return {
    admits: (header) => !isOnLoopback || header === undefined || admits(header),
    isLocal: (header) => isOnLoopback && header !== undefined && isLoopback(nameIn(header)),
  };
}
