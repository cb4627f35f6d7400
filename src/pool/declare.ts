import { isDeepStrictEqual } from "node:util";
import { Compile } from "typebox/compile";
import type { RequestId } from "../base/ids.js";
import type { Log } from "../base/log.js";
import { PoolCreate } from "./config.js";
import type { PoolConfig } from "./launch-config.js";
import { type Defaults, mergeConfig } from "./merge.js";
import type { Caller, PoolOperations } from "./operations.js";
import { type References, type Resolved, resolveReferences } from "./references.js";

const check = Compile(PoolCreate);

interface Ports extends References {
  readonly pools: PoolOperations;
  readonly log: Log;
  readonly defaults: Defaults;
  request(): RequestId;
}

/**
 * The pools of the configuration are created when absent and otherwise left as the API made them, the difference logged. One that
 * names what is not registered waits for a later start: only a daemon that runs can be given it.
 */
export async function declarePools(declared: readonly unknown[], ports: Ports): Promise<void> {
  for (const body of declared) {
    if (!check.Check(body)) throw new Error(`a pool of the configuration is not valid: ${faultsOf(body)}`);
    if (body.name === undefined) throw new Error("a pool of the configuration has no name, and would be created at every start");
    await declare(ports, body, body.name);
  }
}

async function declare(ports: Ports, body: PoolCreate, name: string): Promise<void> {
  const { pools, log, defaults, request } = ports;
  const [present, resolved] = [await pools.get(name), await resolveReferences(ports, body)];
  const missing = resolved.faults.map(({ message }) => message);
  if (missing.length > 0) log.error({ pool: name, missing }, "declared pool names what is not registered; it is left as it is until a start that finds it");
  if (present.kind === "done") {
    const fields = differences(resolved.body, present.value.config, defaults);
    if (fields.length > 0) log.warn({ pool: name, fields }, "declared pool differs from the one that exists");
    return;
  }
  if (missing.length > 0) return;
  const caller: Caller = { request: request(), gone: new AbortController().signal, retryCount: 0 };
  const created = await pools.create(body, caller);
  // Another control may have declared it at this very moment.
  if (created.kind === "done" || created.code === "name_taken") return;
  const why = created.details?.map(({ message }) => message).join("; ") ?? created.code;
  throw new Error(`the pool ${name} of the configuration was refused: ${why}`);
}

/** The fields that the declaration would change; what it does not name is nobody's concern. */
function differences({ region: _region, ...body }: PoolCreate & Resolved, config: PoolConfig, defaults: Defaults): readonly string[] {
  const declared = mergeConfig(config, body, defaults);
  if (declared.kind === "refused") return Object.keys(body);
  const [wanted, actual] = [meantBy(declared.value), meantBy(config)];
  return [...new Set([...wanted.keys(), ...actual.keys()])].filter((field) => !isDeepStrictEqual(wanted.get(field), actual.get(field)));
}

/** Each field's value; of extensions and the profile what they mean, whatever they are called by. */
function meantBy({ extension_ids, profile_id, is_engine_named: _named, ...config }: PoolConfig): ReadonlyMap<string, unknown> {
  return new Map<string, unknown>([...Object.entries(config), ["extensions", extension_ids], ["profile", profile_id]]);
}

const faultsOf = (body: unknown): string => [...check.Errors(body)].map((fault) => `${fault.instancePath || "/"} ${fault.message}`).join("; ");
