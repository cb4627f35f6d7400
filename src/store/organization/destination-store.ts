import {
  type Destination,
  type DestinationChange,
  destinationParser,
  type DestinationStore,
  type NewDestination,
  type Progress,
} from "../../audit/export/destination.js";
import type { Position } from "../../audit/entry.js";
import type { Millis } from "../../base/clock.js";
import type { DestinationId, RequestId } from "../../base/ids.js";
import { auditKey, type AuditPart } from "../redis/keys.js";
import type { ScriptStore } from "../redis/redis.js";
import type { ScriptArgs } from "../redis/script-call.js";
import type { ScriptName, ScriptReply } from "../redis/replies.js";

/** Deleted ones whose records are kept. */
const mostDeleted = 100;

/** Export destinations beside the log itself, so that one clock says where in it they begin. */
export class RedisDestinationStore implements DestinationStore {
  constructor(
    private readonly store: ScriptStore,
    private readonly most: number,
  ) {}

  async create(destination: NewDestination): Promise<Destination | "many"> {
    const args = { record: JSON.stringify(destination), most: this.most };
    const { kind, payload } = await this.#run("create-destination", args);
    return kind === "many" ? kind : destinationParser.json(payload);
  }

  async find(id: DestinationId): Promise<Destination | undefined> {
    const text = await this.store.ask((redis) => redis.hget(auditKey("destinations"), id));
    return text === null ? undefined : destinationParser.json(text);
  }

  async all(): Promise<readonly Destination[]> {
    const texts = await this.store.ask((redis) => redis.hvals(auditKey("destinations")));
    return texts
      .map(destinationParser.json)
      .filter(({ deletedAt }) => deletedAt === undefined)
      .toSorted((one, other) => other.createdAt - one.createdAt || (one.id < other.id ? -1 : 1));
  }

  async change(
    { id, revision }: Pick<Destination, "id" | "revision">,
    { region, bucket, prefix, roleArn, kmsKeyId, status }: DestinationChange,
  ): Promise<Destination | "stale" | "missing"> {
    const change = JSON.stringify({ region, bucket, prefix, roleArn, kmsKeyId, status });
    const { kind, payload } = await this.#run("change-destination", { id, revision, change });
    return kind === "changed" ? destinationParser.json(payload) : kind;
  }

  async remove(id: DestinationId, request: RequestId): Promise<"deleted" | "missing"> {
    return (await this.#run("delete-destination", { id, request, most: mostDeleted })).kind;
  }

  now(): Promise<Millis> {
    return this.store.now();
  }

  async move({ id, revision, cursor }: Destination, to: Position, how: Progress): Promise<"moved" | "stale"> {
    const [outcome, why] = typeof how === "string" ? [how, ""] : ["lost", how.lost];
    const args = { id, revision, before: cursor ?? "", after: to, outcome, why };
    return (await this.#run("move-cursor", args)).kind;
  }

  async fail(
    { id, revision }: Pick<Destination, "id" | "revision">,
    { why, delayMs }: { readonly why: string; readonly delayMs: Millis },
  ): Promise<"noted" | "stale"> {
    return (await this.#run("fail-export", { id, revision, why, delayMs })).kind;
  }

  #run<const Name extends ScriptName>(script: Name, args: ScriptArgs): Promise<ScriptReply<Name>> {
    return this.store.run(script, (key) => auditKey(key as AuditPart), args);
  }
}
