import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { systemClock } from "../../../src/base/clock.js";
import { within } from "../../../src/base/deadline.js";
import type { Engine } from "../../../src/browser/chromium.js";
import { findExecutable } from "../../../src/browser/executable.js";
import { bound } from "../bound.js";
import { endGroup } from "../living.js";

/** A parameter, a type or an element of one, as Chromium tells it at /json/protocol. */
export interface ProtocolType {
  readonly id?: string;
  readonly name?: string;
  readonly type?: string;
  readonly $ref?: string;
  readonly enum?: readonly string[];
  readonly items?: ProtocolType;
  readonly properties?: readonly ProtocolType[];
}

export interface ProtocolCommand {
  readonly name: string;
  readonly parameters?: readonly ProtocolType[];
}

export interface ProtocolDomain {
  readonly domain: string;
  readonly types?: readonly ProtocolType[];
  readonly commands?: readonly ProtocolCommand[];
}

const startLimitMs = 60_000;
const switches = [
  "--headless=new",
  "--no-sandbox",
  "--disable-gpu",
  "--no-first-run",
  "--remote-debugging-port=0",
];

/** Every domain of the protocol that the installed engine speaks. */
export async function findProtocol(engine: Engine): Promise<readonly ProtocolDomain[]> {
  const executable = await findExecutable(engine);
  if (executable === undefined) throw new Error(`${engine} is not installed`);
  const directory = await mkdtemp(join(tmpdir(), "remuda-protocol-"));
  const [program = "", ...words] = bound(
    executable,
    ...switches,
    `--user-data-dir=${directory}`,
    "about:blank",
  );
  const env = { ...process.env, TMPDIR: directory };
  const child = spawn(program, words, { stdio: ["ignore", "ignore", "pipe"], detached: true, env });
  const listening = new Promise<string>((resolve, reject) => {
    child.once("error", reject).once("exit", (code) => reject(new Error(`${engine} ended with ${code}`)));
    createInterface({ input: child.stderr }).on("line", (line) => {
      const host = /DevTools listening on ws:\/\/([^/]+)/.exec(line)?.[1];
      if (host !== undefined) resolve(host);
    });
  });
  try {
    const host = await within(systemClock, { what: `starting ${engine}`, limitMs: startLimitMs }, listening);
    return (
      (await (await fetch(`http://${host}/json/protocol`)).json()) as { domains: readonly ProtocolDomain[] }
    ).domains;
  } finally {
    await endGroup(child);
    await rm(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
  }
}
