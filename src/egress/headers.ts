/**
 * They belong to one connection, not to the message (RFC 9110 7.6.1); names in lower case. `trailer` is kept,
 * since trailers are handed on.
 */
const ofConnection = new Set([
  "connection",
  "keep-alive",
  "te",
  "transfer-encoding",
  "upgrade",
  "host",
  "http2-settings",
]);

interface Wanted {
  readonly host: string;
  /** Lets `Upgrade` pass and says so in `Connection`. */
  readonly keepsUpgrade?: boolean;
}

interface OnwardHeaders {
  /** A flat list: name, value, name, value. */
  readonly headers: string[];
  readonly fault?: string;
}

/** The headers of a request as they go on; the URL's host counts, not the Host header. */
export function onwardHeaders(raw: readonly string[], { host, keepsUpgrade = false }: Wanted): OnwardHeaders {
  const headers = ["Host", host];
  const listed = connectionOptions(raw);
  for (let place = 0; place < raw.length; place += 2) {
    const [name = "", value = ""] = [raw[place], raw[place + 1]];
    const lower = name.toLowerCase();
    const isChunked = lower === "transfer-encoding" && value.trim().toLowerCase() === "chunked";
    if (lower === "transfer-encoding" && !isChunked)
      return { headers, fault: "Only chunked is known as Transfer-Encoding" };
    if (lower === "upgrade" && keepsUpgrade) headers.push("Connection", "Upgrade");
    if (isChunked || (lower === "upgrade" && keepsUpgrade) || !isOfConnection(lower, listed))
      headers.push(name, value);
  }
  return { headers };
}

/** A browser's own way out tells its answers by it from those of servers, which therefore can not send it. */
const ofEgress = "x-remuda-egress";

/** The headers of a response as they go back to the browser. */
export function backwardHeaders(raw: readonly string[]): string[] {
  const headers: string[] = [];
  const listed = connectionOptions(raw);
  for (let place = 0; place < raw.length; place += 2) {
    const name = raw[place] ?? "";
    const lower = name.toLowerCase();
    if (lower !== ofEgress && !isOfConnection(lower, listed)) headers.push(name, raw[place + 1] ?? "");
  }
  return headers;
}

const isOfConnection = (lower: string, listed: readonly string[]): boolean =>
  ofConnection.has(lower) || lower.startsWith("proxy-") || listed.includes(lower);

/** What `Connection` names belongs to the connection too, except what frames the message. */
function connectionOptions(raw: readonly string[]): readonly string[] {
  const options: string[] = [];
  for (let place = 0; place < raw.length; place += 2) {
    if (raw[place]?.toLowerCase() !== "connection") continue;
    options.push(...(raw[place + 1] ?? "").split(",").map((option) => option.trim().toLowerCase()));
  }
  return options.filter((option) => option !== "content-length");
}
