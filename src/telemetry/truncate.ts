/** Texts shorter than this are cut no further: what is too large then is large in number. */
const shortestText = 16;
const marker = "...[truncated]";

/**
 * Cuts texts of `data`, the longest first, until its JSON has at most `maxBytes`; where that does not help
 * nothing is left of it. Characters stay whole.
 */
export function truncateData(
  data: Readonly<Record<string, unknown>>,
  maxBytes: number,
): Readonly<Record<string, unknown>> {
  for (let most = Math.floor(maxBytes / 2); most >= shortestText; most = Math.floor(most / 2)) {
    const cut = cutTexts(data, most) as Readonly<Record<string, unknown>>;
    if (Buffer.byteLength(JSON.stringify(cut)) <= maxBytes) return cut;
  }
  return {};
}

function cutTexts(value: unknown, maxBytes: number): unknown {
  if (typeof value === "string") return cutText(value, maxBytes);
  if (Array.isArray(value)) return value.map((item) => cutTexts(item, maxBytes));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, cutTexts(item, maxBytes)]));
}

/** At most `maxBytes` of UTF-8 with the marker, which says that something was cut; never half a character. */
export function cutText(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes) return text;
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return text;
  let end = Math.max(0, maxBytes - marker.length);
  // Bytes that go on with a character begin with the bits 10 (RFC 3629).
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.toString("utf8", 0, end) + marker;
}
