import { type Static, Type } from "typebox";
import type { Millis } from "../../base/clock.js";
import { type BrowserId, NodeId } from "../../base/ids.js";
import { readonlyList } from "../../base/parser.js";
import type { Dataset } from "./dataset-store.js";

/** A node as its beat tells. */
export const NodeFacts = Type.Object({
  id: NodeId,
  host: Type.String(),
  port: Type.Number(),
  /** It is reached by TLS alone. */
  isSecure: Type.Optional(Type.Boolean()),
  memoryBytes: Type.Number(),
  maxBrowsers: Type.Number(),
  isDraining: Type.Boolean(),
  canLaunch: Type.Boolean(),
  /** Why it cannot launch; a text for people. */
  obstacle: Type.Optional(Type.String()),
  engines: readonlyList(Type.String()),
  /** Where its machine stands: browsers of one pool are spread over zones. */
  zone: Type.Optional(Type.String()),
  /** What pools choose nodes by. */
  labels: Type.Optional(Type.Record(Type.String(), Type.String())),
  /**
   * The ids of its process and of its data directory: whoever beats under its name with others is another
   * daemon.
   */
  run: Type.Optional(Type.String()),
  origin: Type.Optional(Type.String()),
  /** What it has restored into a Redis that it had found empty, and when by that Redis's time. */
  restored: Type.Optional(
    Type.Object({ at: Type.Number(), pools: Type.Number(), browsers: Type.Number(), leases: Type.Number() }),
  ),
  /** Set while something is lent there that its drain may not see the end of (Slot.mayOutlast). */
  outlastsDrain: Type.Optional(Type.Literal(true)),
  /** Set while its memory is short: nothing is launched there to stand by. */
  memoryIsShort: Type.Optional(Type.Literal(true)),
  /** Set while its last launches have all failed. */
  failing: Type.Optional(Type.Object({ failures: Type.Number(), error: Type.String() })),
});
export type NodeFacts = Readonly<Static<typeof NodeFacts>>;

/** A node that is not lost. */
export interface LivingNode extends NodeFacts {
  /** It has missed some beats. */
  readonly isLate: boolean;
  /** It has been told to stop, and drains for that, whoever else has asked it to. */
  readonly isStopping: boolean;
  /** Redis's time at which its drain ends, whatever is left then. */
  readonly drainsUntil?: Millis;
}

/**
 * `drainMs`: for so long it is still to drain. `lost`: what it held is being cleared. `taken`: another daemon
 * lives under its name.
 */
export type BeatResult =
  | { readonly kind: "accepted"; readonly drainMs?: Millis }
  | { readonly kind: "lost" }
  | { readonly kind: "taken"; readonly by: NodeFacts };

/** What a beat has come to in a Redis that has the dataset which the node knows. */
export interface BeatInDataset {
  readonly result: BeatResult;
  /** Redis's time. */
  readonly at: Millis;
}

interface HeldRoom {
  readonly browsers: number;
  readonly bytes: number;
}
/** What a node holds. `standby`, where there is any: what gives way to whatever is to be launched there. */
export interface Occupancy extends HeldRoom {
  readonly standby?: HeldRoom;
}

export interface NodeStore {
  beat(facts: NodeFacts): Promise<BeatResult>;
  /** Undefined where Redis has another dataset, or none: then it is told nothing. */
  beatIn(dataset: Dataset["name"], facts: NodeFacts): Promise<BeatInDataset | undefined>;
  /** Nodes that beat within `lostAfterMs`. */
  living(): Promise<readonly LivingNode[]>;
  /** The node is to drain; gives Redis's time at which that ends, or undefined where no such node lives. */
  drain(node: NodeId, ms: Millis): Promise<Millis | undefined>;
  endDrain(node: NodeId): Promise<boolean>;
  /** Another whenever a node has said something else of itself, has come, or is lost. */
  version(): Promise<string>;
  /**
   * Takes nodes without a beat for lost, and gives all that are not forgotten yet: until then they do not
   * count as living. Drops drains of nodes without a beat that ended a day ago.
   */
  lost(): Promise<readonly NodeId[]>;
  /** Lists all nodes that are not forgotten, living or not. */
  known(): Promise<readonly NodeId[]>;
  /** The daemon that has beaten last under this name. */
  holder(node: NodeId): Promise<NodeFacts | undefined>;
  isLost(node: NodeId): Promise<boolean>;
  /** It is gone, and nothing of it is left. */
  forget(node: NodeId): Promise<void>;
  /**
   * It was taken for lost, and what it held is cleared. It may come back as it was, since it may only have
   * stood still: whether it is to drain is kept.
   */
  forgetLost(node: NodeId): Promise<void>;
  /** Empties the node's rooms, because it starts anew. */
  clearRooms(node: NodeId): Promise<void>;
  /**
   * `isTrial`: of a node that fails launches, which is given one at a time, and none while it rests.
   * `standsBy`: it takes nobody's room; for any other, browsers that stand by go where there is no room
   * beside them.
   */
  reserveRoom(
    facts: NodeFacts,
    browser: { id: BrowserId; bytes: number; isTrial?: boolean; standsBy?: boolean },
  ): Promise<boolean>;
  /** Notes that its launches fail: it is given none for so long, then one. */
  rest(node: NodeId, ms: Millis): Promise<void>;
  /** The node launches again. */
  wake(node: NodeId): Promise<void>;
  /** A browser is there, whether there is room or not, and whether it has a record. */
  holdRoom(node: NodeId, browser: { id: BrowserId; bytes: number; standsBy?: boolean }): Promise<void>;
  /** A browser that stood by is a session: its room is nobody else's any more. */
  keepRoom(node: NodeId, browser: { id: BrowserId; bytes: number }): Promise<void>;
  freeRoom(node: NodeId, browser: BrowserId): Promise<void>;
  /** Whether such a browser would fit beside what a node holds; of any size on an empty one. */
  fits(facts: NodeFacts, held: { browsers: number; bytes: number }, bytes: number): boolean;
  occupancy(node: NodeId): Promise<Occupancy>;
  /** Gives back reservations past their deadline whose browser never came to be. */
  sweepRooms(node: NodeId): Promise<void>;
}
