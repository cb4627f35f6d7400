import { spawn } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { systemClock } from "../../../src/base/clock.js";
import { within } from "../../../src/base/deadline.js";
import { findExecutable } from "../../../src/browser/executable.js";
import type { ClientAccess, BrowserSource, Reach } from "./browser-source.js";
import { bound } from "../../support/bound.js";
import { endGroup } from "../../support/living.js";
import { writeFiles } from "./files.js";

/**
 * Full Chromium, which can most, without any guard: no proxy, no policy, no gate, and a port for developer
 * tools. What no attempt gets out of here proves nothing elsewhere.
 */
export async function openPlain(): Promise<BrowserSource> {
  const executable = await findExecutable("chromium");
  if (executable === undefined) throw new Error("Chromium is not installed");
  const directory = await mkdtemp(join(tmpdir(), "remuda-prove-"));
  // What must be refused to a guarded browser is there for this one.
  const remuda = createServer((_, response) => response.end("answered"));
  await new Promise<void>((resolve) => void remuda.listen(0, "::", resolve));
  let count = 0;
  return {
    engine: "chromium",
    hasUploads: true,
    hasOwnPorts: true,
    hasBidi: false,
    open: (reach) => launch(executable, join(directory, `${(count += 1)}`), reach),
    ownPorts: async () => [(remuda.address() as AddressInfo).port],
    async close() {
      remuda.closeAllConnections();
      remuda.close();
      await rm(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
    },
  };
}

const plain = [
  "--headless=new",
  "--no-sandbox",
  "--disable-gpu",
  "--no-first-run",
  "--remote-debugging-port=0",
];
/**
 * A guard of switches alone, as one might think would do. Loopback goes past it, which is where the allowed
 * site is.
 */
const proxied = [
  "--proxy-server=http://127.0.0.1:9",
  "--webrtc-ip-handling-policy=disable_non_proxied_udp",
  "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
];

async function launch(executable: string, directory: string, reach: Reach): Promise<ClientAccess> {
  const switches = [...plain, ...(reach === "proxied" ? proxied : []), `--user-data-dir=${directory}`];
  const [program = "", ...words] = bound(executable, ...switches, "about:blank");
  const env = { ...process.env, TMPDIR: directory };
  const child = spawn(program, words, { stdio: ["ignore", "ignore", "pipe"], detached: true, env });
  const close = (): Promise<void> => endGroup(child);
  const listening = new Promise<string>((resolve, reject) => {
    child.once("error", reject).once("exit", (code) => reject(new Error(`Chromium ended with ${code}`)));
    createInterface({ input: child.stderr }).on("line", (line) => {
      const url = /DevTools listening on (ws:\S+)/.exec(line)?.[1];
      if (url !== undefined) resolve(url);
    });
  });
  try {
    const cdpUrl = await within(systemClock, { what: "starting Chromium", limitMs: 120_000 }, listening);
    return { cdpUrl, close, upload: async (files) => await writeFiles(join(directory, "uploads"), files) };
  } catch (error) {
    await close();
    throw error;
  }
}
