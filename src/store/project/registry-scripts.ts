import type { ProjectId } from "../../base/ids.js";
import type { RedisClient } from "../redis/connect.js";
import { projectKey, type ProjectPart } from "../redis/keys.js";
import type { ScriptStore } from "../redis/redis.js";
import type { ScriptName, ScriptReply } from "../redis/replies.js";
import type { ScriptArgs } from "../redis/script-call.js";

interface ThingKey<Id> {
  /** What the headers of scripts call it. */
  readonly name: string;
  keyOf(project: ProjectId, id: Id): string;
}

/** Runs scripts and plain commands on what a project has registered of one kind: a hash for each thing. */
export class RegistryScripts<Id extends string> {
  constructor(
    private readonly store: ScriptStore,
    private readonly project: ProjectId,
    private readonly thing: ThingKey<Id>,
  ) {}

  /** Runs a script on one thing, and on the indexes of its kind. */
  run<const Name extends ScriptName>(
    script: Name,
    id: Id,
    args: ScriptArgs = {},
  ): Promise<ScriptReply<Name>> {
    const keyOf = (key: string): string =>
      key === this.thing.name ? this.keyOf(id) : this.part(key as ProjectPart);
    return this.store.run(script, keyOf, { id, ...args });
  }

  ask<Value>(command: (redis: RedisClient) => Promise<Value>): Promise<Value> {
    return this.store.ask(command);
  }

  keyOf(id: Id): string {
    return this.thing.keyOf(this.project, id);
  }

  part(part: ProjectPart): string {
    return projectKey(this.project, part);
  }
}
