interface Fetching {
  readonly signal: AbortSignal;
  readonly maxBytes: number;
}

/**
 * The JSON at a URL, and nothing that it leads to: a redirect could lead anywhere. The signal ends the wait for
 * the head and for the body alike.
 */
export async function fetchJson(url: string, { signal, maxBytes }: Fetching): Promise<unknown> {
  const reply = await fetch(url, { redirect: "error", signal, headers: { accept: "application/json" } });
  try {
    if (reply.status !== 200) throw new Error(`${url} answered ${reply.status}`);
    return JSON.parse(await textOf(reply, maxBytes));
  } finally {
    if (!reply.bodyUsed) await reply.body?.cancel();
  }
}

async function textOf({ body, url }: Response, maxBytes: number): Promise<string> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  // To leave the loop cancels the rest of the body.
  for await (const part of body ?? []) {
    bytes += part.length;
    if (bytes > maxBytes) throw new Error(`${url} answered more than ${maxBytes} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}
