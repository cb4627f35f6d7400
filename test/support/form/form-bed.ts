import { afterEach, beforeEach } from "vitest";
import type { NewEntry } from "../../../src/audit/entry.js";
import type { AuditRecorder } from "../../../src/audit/writer.js";
import { systemClock } from "../../../src/base/clock.js";
import type { FormDeps, FormOptions } from "../../../src/form/app.js";
import { listenForForms } from "../../../src/form/server.js";
import { type Got, type LogLine, makeLogBook, send } from "../http/http-server.js";
import { ScriptedForms } from "./scripted-forms.js";

const options: FormOptions = {
  host: "127.0.0.1",
  port: 0,
  publicUrl: null,
  trustedProxies: ["127.0.0.0/8"],
  attemptsPerMinute: 1000,
  requestTimeoutMs: 15_000,
  keepAliveTimeoutMs: 72_000,
  maxConnections: 1000,
  closeLimitMs: 2000,
};

interface FormBed {
  readonly url: string;
  readonly port: number;
  readonly forms: ScriptedForms;
  readonly entries: NewEntry[];
  readonly lines: LogLine[];
  /** A question of the page, from an address of its own. */
  ask(path: string, body: unknown, headers?: Record<string, string>): Promise<Got>;
  close(): Promise<void>;
}

export async function openFormBed(
  over: Partial<FormOptions> = {},
  deps: Partial<FormDeps> = {},
): Promise<FormBed> {
  const forms = new ScriptedForms();
  const entries: NewEntry[] = [];
  const { log, lines } = makeLogBook();
  const audit: AuditRecorder = {
    record: (entry) => void entries.push(entry),
    recordNow: async (entry) => void entries.push(entry),
    async begin() {},
  };
  const { port, close } = await listenForForms(
    { ...options, ...over },
    { forms, audit, clock: systemClock, log, ...deps },
  );
  const url = `http://127.0.0.1:${port}`;
  const ask = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    send(url + path, { method: "POST", body, headers });
  return { url, port, forms, entries, lines, ask, close };
}

/** One for each test of a file: what it has counted and remembers is no other's. */
export function eachFormBed(over: Partial<FormOptions> = {}, deps: Partial<FormDeps> = {}): () => FormBed {
  let bed: FormBed | undefined;
  beforeEach(async () => {
    bed = await openFormBed(over, deps);
  });
  afterEach(async () => bed?.close());
  return () => {
    if (!bed) throw new Error("the form's server is not started");
    return bed;
  };
}
