import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { until } from "./daemon.js";

/** The same switches with a DevTools port beside the pipe, which still ends the browser. */
export const switchesWithPort = (switches: readonly string[]): string[] => [
  "--remote-debugging-port=0",
  ...switches,
];

/** The WebSocket of a browser's port; Chromium writes it into its profile. */
export async function findPort(profile: string): Promise<string> {
  let url: string | undefined;
  await until("a DevTools port", async () => {
    const [port, path] = (await readFile(join(profile, "DevToolsActivePort"), "utf8").catch(() => "")).split(
      "\n",
    );
    url = port && path ? `ws://127.0.0.1:${port}${path}` : undefined;
    return url !== undefined;
  });
  return url ?? "";
}
