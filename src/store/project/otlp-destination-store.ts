import { findOtlpDestinationId, type OtlpDestinationId, type ProjectId } from "../../base/ids.js";
import {
  type DeliveryHealth,
  type KeptDestination,
  type OtlpDestination,
  otlpDestinationRecordParser,
  type OtlpDestinationStore,
} from "../../registry/destinations/destination.js";
import { otlpDestinationKey } from "../redis/keys.js";
import type { ScriptStore } from "../redis/redis.js";
import type { ScriptArgs } from "../redis/script-call.js";
import { RegistryScripts } from "./registry-scripts.js";

/** The fields are read in this order. */
const fields = [
  "record",
  "name",
  "revision",
  "createdAt",
  "updatedAt",
  "failures",
  "lastExportAt",
  "lastErrorAt",
  "lastError",
] as const;
type DestinationFields = readonly (string | null | undefined)[];

/** The OTLP destinations of one project: an index, newest last, who has which name, and a hash for each. */
export class RedisOtlpDestinationStore implements OtlpDestinationStore {
  readonly #scripts: RegistryScripts<OtlpDestinationId>;

  constructor(store: ScriptStore, project: ProjectId) {
    this.#scripts = new RegistryScripts(store, project, {
      name: "otlpDestination",
      keyOf: otlpDestinationKey,
    });
  }

  async create({
    id,
    most,
    ...kept
  }: KeptDestination & { id: OtlpDestinationId; most: number }): Promise<"created" | "taken" | "many"> {
    return (await this.#scripts.run("create-otlp-destination", id, { ...argsOf(kept), most })).kind;
  }

  async find(id: OtlpDestinationId): Promise<OtlpDestination | undefined> {
    return parse(id, await this.#scripts.ask((redis) => redis.hmget(this.#scripts.keyOf(id), ...fields)));
  }

  async findNamed(name: string): Promise<OtlpDestinationId | undefined> {
    const id = await this.#scripts.ask((redis) =>
      redis.hget(this.#scripts.part("otlpDestinationNames"), name),
    );
    return findOtlpDestinationId(id ?? "");
  }

  async findSealed(
    id: OtlpDestinationId,
  ): Promise<{ readonly destination: OtlpDestination; readonly sealed?: string } | undefined> {
    const [sealed, ...texts] = await this.#scripts.ask((redis) =>
      redis.hmget(this.#scripts.keyOf(id), "sealed", ...fields),
    );
    const destination = parse(id, texts);
    return destination && { destination, ...(sealed && { sealed }) };
  }

  async all(): Promise<readonly OtlpDestination[]> {
    const ids = await this.#scripts.ask((redis) =>
      redis.zrevrange(this.#scripts.part("otlpDestinations"), 0, -1),
    );
    const known = ids.flatMap((id) => findOtlpDestinationId(id) ?? []);
    return (await Promise.all(known.map((id) => this.find(id)))).flatMap((found) => found ?? []);
  }

  async change(
    { id, revision }: Pick<OtlpDestination, "id" | "revision">,
    kept: KeptDestination,
  ): Promise<"changed" | "missing" | "stale" | "taken"> {
    return (await this.#scripts.run("change-otlp-destination", id, { ...argsOf(kept), revision })).kind;
  }

  async remove(id: OtlpDestinationId): Promise<"removed" | "missing"> {
    return (await this.#scripts.run("remove-otlp-destination", id)).kind;
  }

  async noteDelivery(id: OtlpDestinationId, error: string | undefined): Promise<void> {
    await this.#scripts.run("note-otlp-delivery", id, { error: error ?? "" });
  }
}

const argsOf = ({ name, record, sealed = "" }: KeptDestination): ScriptArgs => ({
  name,
  record: JSON.stringify(record),
  sealed,
});

function parse(
  id: OtlpDestinationId,
  [record, name, revision, createdAt, updatedAt, ...health]: DestinationFields,
): OtlpDestination | undefined {
  if (!record) return undefined;
  return {
    id,
    ...otlpDestinationRecordParser.json(record),
    name: name ?? "",
    revision: Number(revision),
    createdAt: Number(createdAt),
    updatedAt: Number(updatedAt),
    health: healthOf(health),
  };
}

const healthOf = ([failures, lastExportAt, lastErrorAt, lastError]: DestinationFields): DeliveryHealth => ({
  failures: Number(failures ?? 0),
  ...(lastExportAt && { lastExportAt: Number(lastExportAt) }),
  ...(lastErrorAt && { lastErrorAt: Number(lastErrorAt) }),
  ...(lastError && { lastError }),
});
