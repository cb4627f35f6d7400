import { type BrowserId, findBrowserId, type Partition, partitionOf } from "../../base/ids.js";
import { type StoredRecording, storedRecordingParser } from "../../spec/flight-recording.js";
import type { StoreLimits } from "../limits.js";
import type { ProjectScripts } from "./project-scripts.js";

/** What browsers of one project had recorded when they ended by a fault. */
export class RedisRecordings {
  constructor(
    private readonly scripts: ProjectScripts,
    private readonly limits: Pick<StoreLimits, "maxRecordings" | "tombstoneMs">,
  ) {}

  async keep(browser: BrowserId, recording: string): Promise<void> {
    const { maxRecordings: most, tombstoneMs: keepMs } = this.limits;
    await this.scripts.run("keep-recording", { browser, recording, most, keepMs });
  }

  async find(browser: BrowserId): Promise<StoredRecording | undefined> {
    const text = await this.scripts.ask((redis) => redis.hget(this.scripts.key("flightRecordings"), browser));
    return text === null ? undefined : storedRecordingParser.json(text);
  }

  /** The newest of browsers of that partition. */
  async newest(partition: Partition, most: number): Promise<readonly StoredRecording[]> {
    const all = await this.scripts.ask((redis) =>
      redis.zrevrange(this.scripts.key("flightRecordingOrder"), 0, -1),
    );
    const ids = all.filter((text) => {
      const id = findBrowserId(text);
      return id !== undefined && partitionOf(id) === partition;
    });
    if (ids.length === 0) return [];
    const texts = await this.scripts.ask((redis) =>
      redis.hmget(this.scripts.key("flightRecordings"), ...ids.slice(0, most)),
    );
    return texts.flatMap((text) => (text === null ? [] : storedRecordingParser.json(text)));
  }
}
