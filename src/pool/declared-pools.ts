import { isDeepStrictEqual } from "node:util";
import { Compile } from "typebox/compile";
import type { Principal } from "../access/principal.js";
import type { ExtensionId, ProfileId, RequestId } from "../base/ids.js";
import type { Log } from "../base/log.js";
import { PoolCreate } from "../spec/bodies.js";
import type { PoolSpec } from "../spec/launch-template.js";
import { type SchemaFault, wordFaults } from "../spec/schema-faults.js";
import { createPoolSpec, type SpecDefaults, mergePoolSpec } from "./merge-spec.js";
import type { PoolOperations } from "./operations.js";
import type { Caller } from "../spec/caller.js";
import { clearsProfile } from "../registry/profiles/selectors.js";
import { type References, type Resolved, resolveReferences } from "../registry/references.js";

const check = Compile(PoolCreate);

/** What of the configuration decides over its pools. */
export interface DeclaredPoolBounds {
  readonly defaults: SpecDefaults;
  readonly region: string;
  readonly maxPoolSize: number;
  readonly maxPools: number;
  readonly pooledSessions: number | null;
  readonly concurrentSessions: number | null;
}

/**
 * Finds the faults of declared pools that need nothing else to be known: what pools refer to is known only
 * when the daemon runs.
 */
export function declaredPoolFaults(
  declared: readonly unknown[],
  deciding: DeclaredPoolBounds,
): readonly string[] {
  const bodies = declared.map((body, index) => ({ body, where: `pools[${index}]` }));
  const valid = declared.filter((body): body is PoolCreate => check.Check(body));
  return [
    ...bodies.flatMap(({ body, where }) => faultsOfOne(body, deciding).map((fault) => `${where}${fault}`)),
    ...faultsOfAll(valid, deciding),
  ];
}

/** What is wrong with the form of something declared, where it does not pass this check. */
export function faultsOfForm(
  form: { Errors(declared: unknown): Iterable<SchemaFault> },
  declared: unknown,
): readonly string[] {
  const found = wordFaults([...form.Errors(declared)]);
  // Names of one object may have the same fault.
  return [...new Set(found.map(({ path, words }) => `${path && `.${path}`}: ${words}`))];
}

function faultsOfOne(
  body: unknown,
  { defaults, region, maxPoolSize }: DeclaredPoolBounds,
): readonly string[] {
  if (!check.Check(body)) return faultsOfForm(check, body);
  const faults: string[] = [];
  if (body.name === undefined)
    faults.push(".name: has to be given, or the pool would be created at every start");
  if (body.size > maxPoolSize)
    faults.push(`.size: has to be at most limits.max_pool_size (${maxPoolSize}), and is ${body.size}`);
  if (region !== "" && body.region !== undefined && body.region !== region)
    faults.push(`.region: this deployment is in ${region}`);
  const spec = createPoolSpec(asIfResolved(body), defaults);
  return [
    ...faults,
    ...(spec.kind === "refused" ? (spec.details ?? []) : []).map(({ message }) => `.${message}`),
  ];
}

function faultsOfAll(
  bodies: readonly PoolCreate[],
  { maxPools, pooledSessions, concurrentSessions }: DeclaredPoolBounds,
): readonly string[] {
  const faults: string[] = [];
  const names = bodies.flatMap(({ name }) => name ?? []);
  for (const name of new Set(names.filter((one, index) => names.indexOf(one) !== index)))
    faults.push(`pools: two have the name ${JSON.stringify(name)}`);
  const sum = bodies.reduce((sizes, { size }) => sizes + size, 0);
  for (const [setting, limit] of [
    ["pooled_sessions", pooledSessions],
    ["concurrent_sessions", concurrentSessions],
  ] as const)
    if (limit !== null && sum > limit)
      faults.push(`pools: their sizes are ${sum} together, and limits.${setting} is ${limit}`);
  if (bodies.length > maxPools)
    faults.push(`pools: there are ${bodies.length}, and limits.max_pools is ${maxPools}`);
  return faults;
}

/** Puts ids in the place of what only the registries know. */
function asIfResolved(body: PoolCreate): PoolCreate & Resolved {
  const { extensions, profile } = body;
  return {
    ...body,
    ...(extensions && { extension_ids: extensions.map((_, index) => `extension-${index}` as ExtensionId) }),
    ...(profile && !clearsProfile(profile) && { profile_id: "profile" as ProfileId }),
  };
}

interface DeclaredPoolsPorts extends References {
  readonly pools: PoolOperations;
  readonly log: Log;
  readonly defaults: SpecDefaults;
  /** Who declares them. */
  readonly principal: Principal;
  request(): RequestId;
}

/**
 * The pools of the configuration are created when absent and otherwise left as the API made them, the
 * difference logged. One that names what is not registered, or for which what the API made leaves no room,
 * waits for a later start.
 */
export async function declarePools(declared: readonly unknown[], ports: DeclaredPoolsPorts): Promise<void> {
  for (const body of declared) {
    // Any other was refused with the configuration.
    if (check.Check(body) && body.name !== undefined) await declare(ports, body, body.name);
  }
}

async function declare(ports: DeclaredPoolsPorts, body: PoolCreate, name: string): Promise<void> {
  const { pools, log, defaults, principal, request } = ports;
  const [present, resolved] = [await pools.get(name), await resolveReferences(ports, body)];
  const missing = resolved.faults.map(({ message }) => message);
  if (missing.length > 0)
    log.error(
      { pool: name, missing },
      "declared pool names what is not registered; it is left as it is until a start that finds it",
    );
  if (present.kind === "done") {
    const fields = differences(resolved.body, present.value.spec, defaults);
    if (fields.length > 0) log.warn({ pool: name, fields }, "declared pool differs from the one that exists");
    return;
  }
  if (missing.length > 0) return;
  const caller: Caller = { request: request(), principal, gone: new AbortController().signal, retryCount: 0 };
  const created = await pools.create(body, caller);
  // Another control may have declared the pool at this very moment.
  if (created.kind === "done" || created.code === "name_taken") return;
  const why = created.details?.map(({ message }) => message).join("; ") ?? created.code;
  log.error({ pool: name, why }, "declared pool was refused");
}

/** The fields that the declaration would change; what it does not name is nobody's concern. */
function differences(
  { region: _region, ...body }: PoolCreate & Resolved,
  spec: PoolSpec,
  defaults: SpecDefaults,
): readonly string[] {
  const declared = mergePoolSpec(spec, body, defaults);
  if (declared.kind === "refused") return Object.keys(body);
  const [wanted, actual] = [meantBy(declared.value), meantBy(spec)];
  return [...new Set([...wanted.keys(), ...actual.keys()])].filter(
    (field) => !isDeepStrictEqual(wanted.get(field), actual.get(field)),
  );
}

/** Each field's value; of extensions and the profile what they mean, whatever they are called by. */
function meantBy({
  extension_ids,
  profile_id,
  is_engine_named: _named,
  ...named
}: PoolSpec): ReadonlyMap<string, unknown> {
  return new Map<string, unknown>([
    ...Object.entries(named),
    ["extensions", extension_ids],
    ["profile", profile_id],
  ]);
}
