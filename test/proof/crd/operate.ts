import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { TestPools } from "../../support/kubernetes/pools.js";
import { type Ask, merge, pools } from "./ask.js";

/** Other work on the machine is no failure. */
const limitMs = 180_000;

interface Server {
  readonly ask: Ask;
  /** Where its keys lie, and the number of its process. */
  readonly work: string;
  readonly port: number;
}
type Check = (what: string, holds: boolean, found: unknown) => void;

/** Compiled this lies in dist-prove/test/proof/crd. */
const main = join(import.meta.dirname, "../../../src/main.js");

/** Role operator as its pod runs it, but for the account, which KUBECONFIG names. */
function startOperator({ work, port }: Server, apiUrl: string): ChildProcess {
  const [config, kubeConfig] = [join(work, "operator.json"), join(work, "kubeconfig")];
  writeFileSync(
    config,
    JSON.stringify({ server: { port: 0 }, operator: { period_seconds: 2, request_limit_seconds: 5 } }),
  );
  const cluster = { server: `https://127.0.0.1:${port}`, "insecure-skip-tls-verify": true };
  const user = { "client-certificate": join(work, "client.crt"), "client-key": join(work, "client.key") };
  writeFileSync(
    kubeConfig,
    JSON.stringify({
      apiVersion: "v1",
      kind: "Config",
      clusters: [{ name: "x", cluster }],
      users: [{ name: "x", user }],
      contexts: [{ name: "x", context: { cluster: "x", user: "x" } }],
      "current-context": "x",
    }),
  );
  return spawn(process.execPath, [main], {
    stdio: ["ignore", "ignore", "inherit"],
    env: {
      PATH: process.env["PATH"] ?? "",
      REMUDA_ROLE: "operator",
      REMUDA_CONFIG: config,
      REMUDA_API_URL: apiUrl,
      REMUDA_API_KEY: "a-key-of-the-organization",
      KUBECONFIG: kubeConfig,
    },
  });
}

async function becomes(holds: () => Promise<boolean>): Promise<boolean> {
  for (const until = Date.now() + limitMs; Date.now() < until;)
    if (await holds().catch(() => false)) return true;
    else await new Promise((resolve) => setTimeout(resolve, 200));
  return false;
}

interface Told {
  readonly metadata: { readonly generation: number };
  readonly status?: {
    readonly replicas?: number;
    readonly appliedGeneration?: number;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}

/** The operator on that server, which is killed and stopped meanwhile; Remuda's API is the tests' double. */
export async function operate(server: Server, check: Check): Promise<void> {
  const api = await TestPools.open();
  const operator = startOperator(server, api.url);
  const { ask } = server;
  const path = `${pools}/operated`;
  const signal = (name: NodeJS.Signals): void =>
    void process.kill(Number(readFileSync(join(server.work, "server.pid"), "utf8")), name);
  const isAt = (size: number) => async (): Promise<boolean> => {
    const { metadata, status } = JSON.parse((await ask("GET", path)).text) as Told;
    const isReady = status?.conditions?.some((each) => each.type === "Ready" && each.status === "True");
    const isApplied = status?.appliedGeneration === metadata.generation && status.replicas === size;
    return isApplied && isReady === true && api.pools.get("operated")?.size === size;
  };
  const scale = async (replicas: number): Promise<boolean> =>
    (await ask("PATCH", `${path}/scale`, { spec: { replicas } }, merge)).status === 200;
  const tell = async (what: string, holds: () => Promise<boolean>): Promise<void> => {
    const startedAt = Date.now();
    const does = await becomes(holds);
    check(`operator: ${what}`, does, `${((Date.now() - startedAt) / 1000).toFixed(1)} s`);
  };
  try {
    await ask("POST", pools, {
      apiVersion: "remuda.dev/v1alpha1",
      kind: "BrowserPool",
      metadata: { name: "operated", namespace: "remuda" },
      spec: { replicas: 2, pool: { headless: true } },
    });
    await tell("makes a pool and tells of it", isAt(2));
    check("operator: its finalizer", (await ask("GET", path)).text.includes("remuda.dev/pool"), "held");
    await scale(5);
    await tell("follows the scale", isAt(5));
    signal("SIGKILL");
    await tell("is scaled again when the server was killed", () => scale(7));
    await tell("follows that", isAt(7));
    signal("SIGSTOP");
    await new Promise((resolve) => setTimeout(resolve, 10_000));
    signal("SIGCONT");
    await tell("is scaled again when the server stood still for 10 s", () => scale(3));
    await tell("follows that, too", isAt(3));
    const deletions = api.asked.filter((each) => each.startsWith("DELETE"));
    check("operator: has deleted no pool", deletions.length === 0, deletions.length);
    await ask("DELETE", path);
    await tell("lets the resource go with its pool", async () => (await ask("GET", path)).status === 404);
    check("operator: its pool", !api.pools.has("operated"), "gone");
  } finally {
    const ended = once(operator, "exit");
    operator.kill("SIGTERM");
    check("operator: ends when asked", ((await ended) as [number | null])[0] === 0, operator.exitCode);
    await api.close();
  }
}
