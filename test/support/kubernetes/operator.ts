import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../../src/base/clock.js";
import { openConfig } from "../../../src/config/config.js";
import { operatorRole } from "../../../src/daemon/operator.js";
import { makeLogBook } from "../http/http-server.js";
import { newDirectory } from "../killed-runs.js";
import type { TestCluster } from "./cluster.js";

export interface RunningOperator {
  /** The lines of its log that have this message. */
  said(message: string): readonly object[];
  /** What its readiness probe is answered. */
  readiness(): Promise<number>;
  stop(): Promise<void>;
}

interface OperatorOptions {
  readonly cluster: TestCluster;
  readonly apiUrl: string;
  readonly apiKey: string;
  /** Where a watch is what has to be seen, `period_seconds` is so long that no round comes in between. */
  readonly settings?: object;
}

/** Role operator as its pod runs it, on the test's cluster. */
export async function startOperator(options: OperatorOptions): Promise<RunningOperator> {
  const { cluster, apiUrl, apiKey, settings = { period_seconds: 1, request_limit_seconds: 5 } } = options;
  const directory = newDirectory("operator");
  const file = join(directory, "config.json");
  writeFileSync(file, JSON.stringify({ server: { port: 0 }, operator: settings }));
  const env = {
    REMUDA_ROLE: "operator",
    REMUDA_CONFIG: file,
    REMUDA_API_URL: apiUrl,
    REMUDA_API_KEY: apiKey,
  };
  const opened = openConfig({ packageRoot: directory, env });
  if (opened.kind === "refused") throw new Error(opened.faults.join());
  const stopping = new AbortController();
  const book = makeLogBook();
  const context = {
    log: book.log,
    clock: systemClock,
    stopping: stopping.signal,
    hurry: new AbortController().signal,
    fail: (error: unknown) => {
      throw error;
    },
  };
  const stops = await operatorRole(opened.config, context, cluster.kubeConfig);
  const said = (message: string) => book.lines.filter((line) => line.message === message);
  const port = said("operating BrowserPools")[0]?.fields["port"];
  return {
    said,
    readiness: async () => (await fetch(`http://127.0.0.1:${String(port)}/readyz`)).status,
    async stop() {
      stopping.abort();
      await stops.run();
    },
  };
}
