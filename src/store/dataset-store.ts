import type { ProjectDirectory } from "../access/project.js";
import type { Millis } from "../base/clock.js";
import { BrowserId, isOnDemand, type Partition, projectNamedByPartition, PoolId } from "../base/ids.js";
import { parserOf } from "../base/parser.js";
import { type Browser, leaseOf } from "../pool/browser.js";
import type {
  Dataset,
  DatasetStore,
  JoinedDataset,
  PoolRecord,
  RestoredPool,
} from "../pool/ports/dataset-store.js";
import { PoolSpec } from "../spec/launch-template.js";
import type { PartitionScripts } from "./partition-scripts.js";
import type { RedisProjects } from "./project/projects.js";
import { luaList } from "./records.js";
import { nodesKey, type NodesPart } from "./redis/keys.js";
import type { ScriptStore } from "./redis/redis.js";

/**
 * The most that the clocks of two Redis servers may differ by. Nobody starts two deployments so close to each
 * other.
 */
const apartMs: Millis = 60_000;
/** A pool whose browsers are on several nodes is restored by each of them within this. */
const restMs: Millis = 5000;
/** A node that was away for longer restores nothing. */
const lateMs: Millis = 15 * 60_000;
const browsersAtOnce = 100;

const idsParser = parserOf("a reply of restore-browsers", luaList(BrowserId));
const poolIdParser = parserOf("the id of a pool", PoolId);
const specParser = parserOf("the specification of a pool", PoolSpec);

interface DatasetParts {
  readonly store: ScriptStore;
  readonly scripts: PartitionScripts;
  readonly projects: RedisProjects;
  readonly directory: Pick<ProjectDirectory, "find">;
}

/** Tells whether Redis has forgotten everything, and writes again what nodes know of it. */
export class RedisDatasetStore implements DatasetStore {
  constructor(private readonly parts: DatasetParts) {}

  async join(known: Dataset | undefined): Promise<JoinedDataset> {
    const args = { known: known?.name ?? "", seenAt: known?.seenAt ?? 0, apartMs, lateMs };
    const reply = await this.parts.store.run("join-dataset", (key) => nodesKey(key as NodesPart), args);
    return { kind: reply.kind, dataset: { name: reply.payload, seenAt: reply.at } };
  }

  async present(): Promise<string | undefined> {
    return (await this.parts.store.ask((redis) => redis.get(nodesKey("dataset")))) ?? undefined;
  }

  async poolVersion(partition: Partition): Promise<string> {
    const { scripts } = this.parts;
    const key = scripts.keyOf(partition, "pool");
    return (
      await scripts.ask((redis) =>
        redis.hmget(key, "state", "revision", "revisedAt", "generation", "networkGeneration"),
      )
    ).join(" ");
  }

  async readPool(partition: Partition, templateKeys: readonly string[]): Promise<PoolRecord | undefined> {
    const { scripts } = this.parts;
    const fields = await scripts.ask((redis) => redis.hgetall(scripts.keyOf(partition, "pool")));
    if (fields["state"] !== "open") return undefined;
    return { fields, templates: await this.#templates(partition, templateKeys) };
  }

  /** A pool has few; of sessions on demand everybody may have another. */
  async #templates(partition: Partition, templateKeys: readonly string[]): Promise<Record<string, string>> {
    const { scripts } = this.parts;
    const key = scripts.keyOf(partition, "templates");
    if (!isOnDemand(partition)) return await scripts.ask((redis) => redis.hgetall(key));
    if (templateKeys.length === 0) return {};
    const texts = await scripts.ask((redis) => redis.hmget(key, ...templateKeys));
    return Object.fromEntries(
      templateKeys.flatMap((one, place) => (texts[place] ? [[one, texts[place]]] : [])),
    );
  }

  async restorePool(partition: Partition, pool: PoolRecord, hasLeases: boolean): Promise<RestoredPool> {
    const { scripts } = this.parts;
    const isKnown = await this.#isKnown(partition);
    const isRemnant = !isKnown || !(await this.#hasItsName(partition, pool));
    if (isRemnant && !hasLeases) return { kind: "left", isRemnant };
    const { kind } = await scripts.run({ partition }, "restore-pool", {
      fields: JSON.stringify(isRemnant ? remnantOf(pool.fields) : pool.fields),
      templates: JSON.stringify(pool.templates),
      restMs,
    });
    if (isKnown) await this.#open(partition, pool);
    return { kind, isRemnant };
  }

  async listAgain(partition: Partition): Promise<boolean> {
    const pool = await this.readPool(partition, []);
    if (!pool || !(await this.#isKnown(partition))) return false;
    await this.#hasItsName(partition, pool);
    await this.#open(partition, pool);
    return true;
  }

  /** Nobody can be let into a project that Redis has forgotten. */
  async #isKnown(partition: Partition): Promise<boolean> {
    const project = projectNamedByPartition(partition);
    return project === undefined || (await this.parts.directory.find(project)) !== undefined;
  }

  async #hasItsName(partition: Partition, { fields: { id: owner, name } }: PoolRecord): Promise<boolean> {
    if (isOnDemand(partition) || !name || !owner) return true;
    const projects = this.parts.projects.at(partition);
    return (await projects.reserveName({ kind: "pool", name, owner, partition })) !== undefined;
  }

  async #open(partition: Partition, { fields }: PoolRecord): Promise<void> {
    if (isOnDemand(partition)) return;
    await this.parts.projects.at(partition).reopenPool(poolIdParser.value(fields["id"]));
  }

  async restoreBrowsers(partition: Partition, browsers: readonly Browser[]): Promise<readonly BrowserId[]> {
    const restored: BrowserId[] = [];
    for (let from = 0; from < browsers.length; from += browsersAtOnce) {
      const part = browsers.slice(from, from + browsersAtOnce);
      const named = await Promise.all(part.map((browser) => this.#withItsName(partition, browser)));
      const args = { browsers: JSON.stringify(named) };
      const { payload } = await this.parts.scripts.run({ partition }, "restore-browsers", args);
      restored.push(...Object.values(idsParser.json(payload)));
    }
    return restored;
  }

  /** A session whose name somebody else has taken meanwhile goes on without it. */
  async #withItsName(partition: Partition, browser: Browser): Promise<Browser> {
    const lease = leaseOf(browser);
    if (browser.state !== "leased" || lease?.name === undefined) return browser;
    const ask = { kind: "session", name: lease.name, owner: lease.id, partition } as const;
    if (await this.parts.projects.at(partition).reserveName(ask)) return browser;
    const { name: _, ...unnamed } = lease;
    return { ...browser, lease: unnamed };
  }
}

/** Launches nothing and has no name. */
function remnantOf(fields: PoolRecord["fields"]): PoolRecord["fields"] {
  const { name: _, spec: text, ...others } = fields;
  if (text === undefined) return others;
  const { name: __, ...spec } = specParser.json(text);
  return { ...others, size: "0", spec: JSON.stringify({ ...spec, size: 0 }) };
}
