/**
 * `redis+sentinel://[user:password@]host[:port][,host[:port]…]/name`, in groups: the scheme without its
 * sentinels, user, password, hosts and name. The configuration admits by it what the store reads by it.
 */
export const sentinelUrlPattern =
  "^(rediss?)\\+sentinel://(?:([^:@/\\s]*)(?::([^@/\\s]*))?@)?([^@/\\s]+)/([^/?#\\s]+)$";

const sentinelUrl = new RegExp(sentinelUrlPattern);

/**
 * Whether a URL of Redis, or the path of its socket, can be read. A `/`, `?` or `#` in a password ends the
 * host early, and a lone `%` cannot be decoded.
 */
export function isRedisUrl(url: string): boolean {
  if (url.startsWith("/")) return !url.startsWith("//");
  const [, , user = "", password = "", hosts, name = ""] = sentinelUrl.exec(url) ?? [];
  if (hosts !== undefined) return hosts.split(",").every(isHost) && [user, password, name].every(isDecodable);
  if (!URL.canParse(url)) return false;
  const { username, password: secret, pathname, search, hash } = new URL(url);
  const endsAsMeant = /^\/?\d*$/.test(pathname) && hash === "" && !search.includes("@");
  return endsAsMeant && isDecodable(username) && isDecodable(secret);
}

const isHost = (host: string): boolean => URL.canParse(`http://${host}`);

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}
