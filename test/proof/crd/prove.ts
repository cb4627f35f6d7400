import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { enclosed } from "../enclosed.js";
import { type Answer, apply, type Ask, askerOf, merge, pools } from "./ask.js";
import { operate } from "./operate.js";

// Compiled it lies in dist-prove/test/proof/crd.
const root = process.cwd();
const port = 16_443;
const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

const poolOf = (name: string, spec: object): object => ({
  apiVersion: "remuda.dev/v1alpha1",
  kind: "BrowserPool",
  metadata: { name, namespace: "remuda" },
  spec,
});
const read = (file: string): object => parse(readFileSync(join(root, "k8s", file), "utf8")) as object;

/** What the rules refuse, each with a part of the sentence that says why. */
const refused: readonly (readonly [string, object])[] = [
  ["replicas: Required", {}],
  ["greater than or equal to 1", { replicas: 0 }],
  ["headless has to be true", { replicas: 1, pool: { engine: "headless-shell" } }],
  [
    "takes no extensions",
    { replicas: 1, pool: { engine: "headless-shell", headless: true, extensions: [{ id: "x" }] } },
  ],
  ["have 1GiB, 2GiB or 4GiB", { replicas: 1, pool: { headless: true, memory: "8GiB" } }],
  ["have 8GiB or 16GiB", { replicas: 1, pool: { memory: "1GiB" } }],
  ["is for headful browsers", { replicas: 1, pool: { headless: true, kiosk_mode: true } }],
  ["spec.pool.name", { replicas: 1, pool: { name: "x" } }],
  ["spec.pool.size", { replicas: 1, pool: { size: 3 } }],
  ["Unsupported value", { replicas: 1, pool: { engine: "firefox" } }],
];

async function tryAll(ask: Ask, tell: (what: string, answer: Answer, holds: boolean) => void): Promise<void> {
  const expectIn = (...[what, answer, status, part = ""]: [string, Answer, number, string?]): void =>
    tell(what, answer, answer.status === status && answer.text.includes(part));
  for (const [why, spec] of refused)
    expectIn(`refuses: ${why}`, await ask("POST", pools, poolOf("bad", spec)), 422, why);
  const long = poolOf("a".repeat(64), { replicas: 1 });
  expectIn("refuses a long name", await ask("POST", pools, long), 422, "63 characters");
  const example = read("examples/browserpool.yaml");
  const created = await ask("POST", pools, example);
  expectIn("takes the example", created, 201);
  const { metadata } = JSON.parse(created.text) as { metadata: { uid: string } };
  const network = poolOf("free", { replicas: 1, pool: { network: { allowed_hosts: ["a.example"] } } });
  expectIn("keeps what it does not know of a pool", await ask("POST", pools, network), 201, "a.example");
  const scale = `${pools}/agents/scale`;
  expectIn("is scaled", await ask("PATCH", scale, { spec: { replicas: 50 } }, merge), 200, '"replicas":50');
  const status = { replicas: 50, selector: "remuda.dev/browsers-of=x" };
  const applied = {
    ...poolOf("agents", {}),
    spec: undefined,
    metadata: { name: "agents", uid: metadata.uid },
    status,
  };
  const as = "?fieldManager=remuda-operator&force=true";
  expectIn("takes a status", await ask("PATCH", `${pools}/agents/status${as}`, applied, apply), 200);
  expectIn("tells scalers of it", await ask("GET", scale), 200, '"selector":"remuda.dev/browsers-of=x"');
  expectIn("left replicas alone", await ask("GET", `${pools}/agents`), 200, '"replicas":50');
  const stale = { metadata: { resourceVersion: "1", finalizers: ["remuda.dev/pool"] } };
  expectIn("refuses an old version", await ask("PATCH", `${pools}/agents`, stale, merge), 409);
  const other = await ask("PATCH", `${pools}/agents?fieldManager=other`, example, apply);
  expectIn("keeps what was scaled from others", other, 409, 'subresource \\"scale\\"');
  const old = await ask("GET", `${pools}?watch=true&resourceVersion=1&timeoutSeconds=2`);
  expectIn("says 410 in a watch of an old version", old, 200, '"code":410');
}

/** Waits until the definition is established, for a minute at most. */
async function define(ask: Ask): Promise<void> {
  const definition = read("base/crd.yaml");
  for (let left = 60; left > 0; left -= 1) {
    const got = await ask("POST", definitions, definition).catch(() => undefined);
    const now = await ask("GET", `${definitions}/browserpools.remuda.dev`).catch(() => undefined);
    if (got?.status === 422) throw new Error(got.text);
    const isServed = (await ask("GET", pools).catch(() => undefined))?.status === 200;
    if (isServed && now?.text.includes('"type":"Established"')) return;
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
  throw new Error("the definition was not established");
}

async function stop(server: ChildProcess): Promise<void> {
  const ended = once(server, "exit");
  server.stdin?.end();
  await ended;
}

let faults = 0;
function check(what: string, holds: boolean, found: unknown): void {
  faults += holds ? 0 : 1;
  console.log(`${holds ? "ok    " : "FAULT "} ${what}: ${String(found)}`);
}

async function prove(): Promise<void> {
  const script = join(root, "test/proof/crd/serve.sh");
  const server = spawn(script, [join(root, ".prove-crd"), String(port)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  server.on("error", (error) => console.log(`NOT PROVED: ${error.message}`));
  const [line] = (await Promise.race([once(server.stdout, "data"), once(server, "exit")])) as [unknown];
  if (!(line instanceof Buffer))
    return check("the API server of custom resources", false, "NOT PROVED: not built or not started");
  try {
    const work = line.toString().trim();
    const ask = askerOf(work, port);
    await define(ask);
    await tryAll(ask, (what, { status, text }, holds) =>
      check(what, holds, holds ? status : `${status} ${text}`),
    );
    await operate({ ask, work, port }, check);
  } finally {
    await stop(server);
  }
}

/** What is started and mounted for it ends with this process, however that ends. */
async function main(): Promise<void> {
  const inside = "--inside";
  if (process.argv.includes(inside)) return await prove();
  const [program = "", ...args] = enclosed(
    { hasOwnNetwork: false },
    process.execPath,
    fileURLToPath(import.meta.url),
    inside,
  );
  const [code] = (await once(spawn(program, args, { stdio: "inherit" }), "exit")) as [number | null];
  faults += code ?? 1;
  console.log(faults === 0 ? "all hold" : `${faults} do not`);
}

await main();
process.exitCode = Math.min(faults, 100);
