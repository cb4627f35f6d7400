import { isDeepStrictEqual } from "node:util";
import { Compile } from "typebox/compile";
import type { RequestId } from "../base/ids.js";
import type { Log } from "../base/log.js";
import { PoolCreate } from "./config.js";
import type { PoolConfig } from "./launch-config.js";
import { type Defaults, mergeConfig } from "./merge.js";
import type { Caller, PoolOperations } from "./operations.js";
import { type ProxyRefs, resolveProxies } from "./proxies.js";

const check = Compile(PoolCreate);

interface Ports {
  readonly pools: PoolOperations;
  readonly proxies: ProxyRefs;
  readonly log: Log;
  readonly defaults: Defaults;
  request(): RequestId;
}

/** The pools of the configuration are created when absent and otherwise left as the API made them, the difference logged. */
export async function declarePools(declared: readonly unknown[], ports: Ports): Promise<void> {
  for (const body of declared) {
    if (!check.Check(body)) throw new Error(`a pool of the configuration is not valid: ${faultsOf(body)}`);
    if (body.name === undefined) throw new Error("a pool of the configuration has no name, and would be created at every start");
    await declare(ports, body, body.name);
  }
}

async function declare({ pools, proxies, log, defaults, request }: Ports, body: PoolCreate, name: string): Promise<void> {
  const present = await pools.get(name);
  if (present.kind === "done") {
    const fields = differences((await resolveProxies(proxies, body)).body, present.value.config, defaults);
    if (fields.length > 0) log.warn({ pool: name, fields }, "declared pool differs from the one that exists");
    return;
  }
  const caller: Caller = { request: request(), gone: new AbortController().signal, retryCount: 0 };
  const created = await pools.create(body, caller);
  // Another control may have declared it at this very moment.
  if (created.kind === "done" || created.code === "name_taken") return;
  const why = created.details?.map(({ message }) => message).join("; ") ?? created.code;
  throw new Error(`the pool ${name} of the configuration was refused: ${why}`);
}

/** The fields that the declaration would change; what it does not name is nobody's concern. */
function differences({ region: _region, ...body }: PoolCreate, config: PoolConfig, defaults: Defaults): readonly string[] {
  const declared = mergeConfig(config, body, defaults);
  if (declared.kind === "refused") return Object.keys(body);
  const actual = new Map<string, unknown>(Object.entries(config));
  return Object.entries(declared.value).filter(([field, value]) => !isDeepStrictEqual(value, actual.get(field))).map(([field]) => field);
}

const faultsOf = (body: unknown): string => [...check.Errors(body)].map((fault) => `${fault.instancePath || "/"} ${fault.message}`).join("; ");
