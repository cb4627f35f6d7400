import { type Done, refusal, type Refusal } from "../base/errors.js";
import { newPoolId, newRequestId, partitionOf, type PoolId } from "../base/ids.js";
import { withFaults } from "../registry/proxies/selectors.js";
import { resolveReferences } from "../registry/references.js";
import type { PoolCreate } from "../spec/bodies.js";
import { type Caller, idempotencyKeyOf } from "../spec/caller.js";
import type { PoolSpec } from "../spec/launch-template.js";
import { createPoolSpec } from "./merge-spec.js";
import type { Pool } from "./pool.js";
import { findOne, type PoolPorts, reserveSize, sizeRefusal, writeOf } from "./pool-operations.js";
import type { IdempotencyKey } from "./ports/pool-store.js";

/** POST /browser_pools: name and size are reserved first, the record makes them final. */
export const makeCreatePool =
  (ports: PoolPorts) =>
  async (body: PoolCreate, caller: Caller): Promise<Done<Pool> | Refusal> => {
    const spec = await specOf(ports, body);
    const idempotencyKey = idempotencyKeyOf(caller, "create pool", body);
    if (idempotencyKey) return await createOnce(ports, spec, idempotencyKey);
    if (spec.kind === "refused") return spec;
    const id = newPoolId(ports.projects.project);
    return (await writePool(ports, { id, spec: spec.value })) ?? (await findOne(ports, id));
  };

async function specOf(ports: PoolPorts, body: PoolCreate): Promise<Done<PoolSpec> | Refusal> {
  const resolved = await resolveReferences(ports, body);
  const spec = withFaults(createPoolSpec(resolved.body, ports.defaults), resolved.faults);
  if (spec.kind === "refused") return spec;
  const elsewhere = refusal("not_supported", { message: `This deployment is in ${ports.region}` });
  const isHere = body.region === undefined || body.region === ports.region;
  return sizeRefusal(ports, body.size) ?? (isHere ? spec : elsewhere);
}

/** Stands before the pool that a key remembers while it is to be made. One made and gone was deleted. */
const unmade = "unmade ";

/** What a first request is refused for now is no matter to the repeat of one that has made its pool. */
async function createOnce(
  ports: PoolPorts,
  spec: Done<PoolSpec> | Refusal,
  idempotencyKey: IdempotencyKey,
): Promise<Done<Pool> | Refusal> {
  const { projects } = ports;
  const fresh = unmade + newPoolId(projects.project);
  const earlier =
    spec.kind === "refused"
      ? await projects.recall(idempotencyKey)
      : await projects.remember(idempotencyKey, fresh);
  if (earlier.kind === "mismatch") return refusal("idempotency_mismatch");
  if (earlier.kind === "new" && spec.kind === "refused") return spec;
  const value = earlier.kind === "same" ? earlier.value : fresh;
  if (!value.startsWith(unmade)) return await findOne(ports, value);
  const id = value.slice(unmade.length) as PoolId;
  return await goOn(ports, { id, spec, idempotencyKey });
}

/**
 * An earlier attempt may have failed anywhere on its way: it is gone on with, under the same id. A pool that
 * it has made stays as others have changed it since.
 */
async function goOn(
  ports: PoolPorts,
  {
    id,
    spec,
    idempotencyKey,
  }: { id: PoolId; spec: Done<PoolSpec> | Refusal; idempotencyKey: IdempotencyKey },
): Promise<Done<Pool> | Refusal> {
  const { projects } = ports;
  const state = await projects.findPoolState(id);
  if (state === "open") await openPool(ports, id);
  if (state === undefined || state === "creating") {
    if (spec.kind === "refused") return state ? refusal("conflict", { message: underWay }) : spec;
    const isAlone = () => projects.forgetKey(idempotencyKey, unmade + id);
    const refused = await writePool(ports, { id, spec: spec.value, isAlone });
    if (refused) return refused;
  }
  await projects.settleKey(idempotencyKey, id);
  return await findOne(ports, id);
}

const underWay = "An earlier request under this idempotency key may still create its pool";

interface PoolAttempt {
  readonly id: PoolId;
  readonly spec: PoolSpec;
  /** Whether no other attempt goes on with the same pool, nor ever will; asked where this one is refused. */
  isAlone?(): Promise<boolean>;
}

async function writePool(ports: PoolPorts, attempt: PoolAttempt): Promise<Refusal | undefined> {
  const { projects, poolStore } = ports;
  const { id, spec } = attempt;
  const { name } = spec;
  // Noted before anything is reserved for it, so that what comes to nothing is found again.
  await projects.addPool(id);
  const named =
    name === undefined
      ? undefined
      : await projects.reserveName({ kind: "pool", name, owner: id, partition: partitionOf(id) });
  const reserved =
    name === undefined || named
      ? await reserveSize(ports, id, spec.size)
      : refusal("name_taken", { message: `A pool named ${name} exists` });
  if (reserved.kind === "refused") {
    if (name !== undefined && named?.isNew)
      await projects.freeName({ kind: "pool", name, owner: id, only: named });
    return (await comesToNothing(projects, attempt)) ? reserved : undefined;
  }
  await poolStore.createPool(partitionOf(id), { id, write: writeOf(spec), request: newRequestId() });
  return await openPool(ports, id);
}

/**
 * Whether a refused attempt has made no pool. What another may be about to make it from is left to that one,
 * and to the sweeps.
 */
async function comesToNothing(
  projects: PoolPorts["projects"],
  { id, isAlone }: PoolAttempt,
): Promise<boolean> {
  if (!isAlone || (await isAlone())) return await projects.forgetPool(id);
  const state = await projects.findPoolState(id);
  return state === undefined || state === "creating";
}

async function openPool(ports: PoolPorts, id: PoolId): Promise<undefined> {
  await ports.projects.openPool(id);
  ports.kick(id);
}
