import { once } from "node:events";
import { createServer } from "node:net";

/** Below those that Linux gives to whoever asks for any: what is free here stays so while others connect. */
const [lowest, count] = [10_000, 20_000];
/** Whoever was given one may not listen there yet. */
const given = new Set<number>();

/** A port of loopback on which nobody listens. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = lowest + Math.floor(Math.random() * count);
    if (given.has(port)) continue;
    given.add(port);
    if (await isFree(port)) return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, "127.0.0.1");
  try {
    await once(server, "listening");
  } catch {
    return false;
  }
  server.close();
  await once(server, "close");
  return true;
}
