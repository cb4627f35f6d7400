import { type Project, type ProjectDirectory, projectParser } from "../../access/project.js";
import type { Millis } from "../../base/clock.js";
import { defaultProject, findProjectId, type ProjectId } from "../../base/ids.js";
import { accessKey, type AccessPart } from "../redis/keys.js";
import type { ScriptStore } from "../redis/redis.js";
import type { ScriptArgs } from "../redis/script-call.js";
import type { ScriptName, ScriptReply } from "../redis/replies.js";

/** Which projects there are, beside the API keys, so that one script lets a request in. */
export class RedisProjectDirectory implements ProjectDirectory {
  constructor(private readonly store: ScriptStore) {}

  async create(ask: Parameters<ProjectDirectory["create"]>[0]): Promise<"created" | "taken" | "many"> {
    return (await this.#run("create-project", { ...ask })).kind;
  }

  async find(id: ProjectId): Promise<Project | undefined> {
    const text = await this.store.ask((redis) => redis.hget(accessKey("projects"), id));
    return text === null ? undefined : projectParser.json(text);
  }

  async findNamed(name: string): Promise<ProjectId | undefined> {
    const id = await this.store.ask((redis) => redis.hget(accessKey("projectNames"), name));
    return findProjectId(id ?? "");
  }

  async all(): Promise<readonly Project[]> {
    const texts = await this.store.ask((redis) => redis.hvals(accessKey("projects")));
    return texts.map(projectParser.json);
  }

  async change(
    id: ProjectId,
    { name, status }: Parameters<ProjectDirectory["change"]>[1],
  ): Promise<"changed" | "missing" | "taken"> {
    const args = { id, name: name ?? "", status: status ?? "", closingMs: "" };
    return (await this.#run("change-project", args)).kind;
  }

  async close(
    ...[id, { name, limitMs: closingMs }]: Parameters<ProjectDirectory["close"]>
  ): ReturnType<ProjectDirectory["close"]> {
    const args = { id, name: name ?? "", status: "archived", closingMs };
    return (await this.#run("change-project", args)).kind;
  }

  async settle(...[id, how]: Parameters<ProjectDirectory["settle"]>): ReturnType<ProjectDirectory["settle"]> {
    return (await this.#run("settle-project", { id, how })).kind;
  }

  async remove(id: ProjectId): Promise<"removed" | "missing" | "active"> {
    return (await this.#run("remove-project", { id })).kind;
  }

  async archivedFor(ms: Millis): Promise<readonly ProjectId[]> {
    const before = (await this.store.now()) - ms;
    return (await this.all())
      .filter(({ status, closing, updatedAt }) => status === "archived" && !closing && updatedAt <= before)
      .map(({ id }) => id);
  }

  async deletedFor(ms: Millis): Promise<readonly ProjectId[]> {
    const before = (await this.store.now()) - ms;
    const ids = await this.store.ask((redis) =>
      redis.zrangebyscore(accessKey("deletedProjects"), "-inf", before),
    );
    return ids.flatMap((id) => findProjectId(id) ?? []);
  }

  async forget(id: ProjectId): Promise<void> {
    await this.store.ask((redis) => redis.zrem(accessKey("deletedProjects"), id));
  }

  /** All projects beside the default one that may have anything: also those that were deleted lately. */
  async others(): Promise<readonly ProjectId[]> {
    const [there, deleted] = await Promise.all([
      this.store.ask((redis) => redis.hkeys(accessKey("projects"))),
      this.store.ask((redis) => redis.zrange(accessKey("deletedProjects"), "0", "-1")),
    ]);
    return [...there, ...deleted].flatMap((text) => {
      const id = findProjectId(text);
      return id === undefined || id === defaultProject ? [] : [id];
    });
  }

  #run<const Name extends ScriptName>(script: Name, args: ScriptArgs): Promise<ScriptReply<Name>> {
    return this.store.run(script, (key) => accessKey(key as AccessPart), args);
  }
}
