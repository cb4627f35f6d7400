import { type Static, Type } from "typebox";
import type { Millis } from "../base/clock.js";
import { ControlId } from "../base/ids.js";
import { parserOf } from "../base/parser.js";
import { nodesKey, tickControlsKey, ticksKey } from "./redis/keys.js";
import type { ScriptStore } from "./redis/redis.js";

const ListeningReply = Type.Object({
  /** In ms. */
  forMs: Type.Number(),
  epoch: Type.Object({ number: Type.Number(), startedAt: Type.Number(), why: Type.String() }),
});
type ListeningReply = Readonly<Static<typeof ListeningReply>>;
const listeningParser = parserOf("a reply of ticks-steady", ListeningReply);

const controlsParser = parserOf("a reply of share-ticks", Type.Array(ControlId));

/** When each schedule last ran, by Redis's clock, and which controls run ticks. */
export class RedisTickStore {
  constructor(private readonly store: ScriptStore) {}

  async ran(name: string): Promise<void> {
    const at = await this.store.now();
    await this.store.ask((redis) => redis.hset(ticksKey, name, String(at)));
  }

  async ageMs(name: string): Promise<number> {
    const text = await this.store.ask((redis) => redis.hget(ticksKey, name));
    const ageMs = (await this.store.now()) - Number(text ?? -Infinity);
    // It ran in what is still to come by a clock that has gone back since, so that nothing is known.
    return ageMs < 0 ? Infinity : ageMs;
  }

  /**
   * Notes that the ticks listen, and for how long they have done so without a gap: beats during an outage
   * were lost, and so were those while Redis itself was started anew, however quickly.
   */
  async listen(gapMs: number): Promise<ListeningReply> {
    const keyOf = (key: string): string => (key === "epoch" ? nodesKey("epoch") : ticksKey);
    return listeningParser.json((await this.store.run("ticks-steady", keyOf, { gapMs })).payload);
  }

  /** Notes that a control lives and runs ticks, and gives all that do: none that was silent for `lostMs`. */
  async share(control: ControlId, lostMs: Millis): Promise<readonly ControlId[]> {
    const { payload } = await this.store.run("share-ticks", () => tickControlsKey, { control, lostMs });
    return controlsParser.json(payload);
  }

  async leave(control: ControlId): Promise<void> {
    await this.store.ask((redis) => redis.zrem(tickControlsKey, control));
  }
}
