import type { Readable } from "node:stream";
import { type Static, Type } from "typebox";
import type { Millis } from "../../base/clock.js";
import { type Done, type ErrorCode, errorCodes, type Refusal } from "../../base/errors.js";
import {
  BrowserId,
  ClaimId,
  ControlId,
  Digest,
  LeaseId,
  NodeId,
  Partition,
  ProfileId,
  RequestId,
} from "../../base/ids.js";
import { parserOf, readonlyList } from "../../base/parser.js";
import type { CurlBody } from "../../spec/curl.js";
import type { Caller } from "../../spec/caller.js";
import { type LeasedBrowser, NetworkChange, NetworkSettings } from "../browser.js";

/**
 * Asks the browser's node, for the lease that the browser has now. Answers the JSON of a `CurlReply`, as it
 * comes; it breaks off where the node does.
 */
export type AskCurl = (
  browser: LeasedBrowser,
  body: CurlBody,
  caller: Pick<Caller, "request" | "gone">,
) => Promise<Done<Readable> | Refusal>;

/**
 * `payload`: what was asked for, where the question asks for something. `text`: why it failed, for people;
 * `code`: what that is answered as, where the node can tell whose fault it is.
 */
export type NodeReply =
  | { readonly kind: "silent" }
  | { readonly kind: "done"; readonly payload?: string }
  | { readonly kind: "failed"; readonly text?: string; readonly code?: ErrorCode };

/**
 * Sends a node a message over HTTP, without Redis. Never throws: undefined where the node could not be
 * reached.
 */
export type SendDirectly = (
  node: NodeId,
  message: NodeMessage,
  limitMs: Millis,
) => Promise<NodeReply | undefined>;

const Code = Type.Enum(errorCodes);
const toWaiter = { waiter: RequestId, connection: RequestId };

/** What its node said of a launch that failed. A daemon of an earlier version names no browser. */
export const LaunchFailure = Type.Object({
  node: NodeId,
  error: Type.String(),
  browser: Type.Optional(BrowserId),
});
export type LaunchFailure = Readonly<Static<typeof LaunchFailure>>;

/** Messages between roles: hints, each repeated by a tick when lost. */
export const ControlMessage = Type.Union([
  Type.Object({
    kind: Type.Literal("granted"),
    ...toWaiter,
    /** JSON text of its record. */
    browser: Type.String(),
    at: Type.Number(),
  }),
  /** `forgotten`: the place was given up while its control stood still, and cannot be had again. */
  Type.Object({ kind: Type.Enum(["superseded", "deleted", "forgotten"]), ...toWaiter }),
  Type.Object({ kind: Type.Literal("failed"), ...toWaiter, ...LaunchFailure.properties }),
  /**
   * `text`: why not, for people. `code`: what that is answered as, where the node can tell whose fault it is.
   */
  Type.Object({
    kind: Type.Literal("answer"),
    question: RequestId,
    ok: Type.Boolean(),
    payload: Type.Optional(Type.String()),
    text: Type.Optional(Type.String()),
    code: Type.Optional(Code),
  }),
]);
export type ControlMessage = Readonly<Static<typeof ControlMessage>>;

/**
 * An extension that a holder has given a running browser, staged and checked; its bytes are in the archives.
 */
const UploadedExtension = Type.Object({ name: Type.String(), digest: Digest });
export type UploadedExtension = Readonly<Static<typeof UploadedExtension>>;

/** What a PATCH asks of a running browser. */
const runningChange = {
  viewport: Type.Optional(Type.Object({ width: Type.Number(), height: Type.Number() })),
  /** Absent where it had none. */
  profile: Type.Optional(Type.Object({ id: ProfileId, save: Type.Boolean() })),
  network: Type.Optional(NetworkSettings),
};
const RunningChange = Type.Object(runningChange);
export type RunningChange = Readonly<Static<typeof RunningChange>>;

const NodeRequest = Type.Union([
  Type.Object({ kind: Type.Literal("navigate"), url: Type.String() }),
  /**
   * Has a node put in force what the lease's record asks of its network: the record is the truth, whatever
   * order messages come in. `change` is what the record asks, for a node that cannot read it there.
   */
  Type.Object({
    kind: Type.Literal("network"),
    revision: Type.Number(),
    change: Type.Optional(NetworkChange),
  }),
  /** Asks for the JSON of a `FlightRecording`. */
  Type.Object({ kind: Type.Literal("recording") }),
  /** Has a node capture what the lease's record says. */
  Type.Object({ kind: Type.Literal("telemetry"), revision: Type.Number(), telemetry: Type.String() }),
  /** Has a node load archives into the running browser: all of them, or none. */
  Type.Object({ kind: Type.Literal("extensions"), items: readonlyList(UploadedExtension) }),
  /**
   * Has a node change all of it, or nothing: a viewport, the state of a profile, which a restart brings; what
   * `network` will ask for is made ready.
   */
  Type.Object({ kind: Type.Literal("change"), ...runningChange }),
  /** Has a node write values into a page, once: a sealed `PageFill`. Asks for the JSON of its outcome. */
  Type.Object({ kind: Type.Literal("fill"), sealed: Type.String() }),
  /** Has a node give a browser a passkey, or take it away: a sealed order. */
  Type.Object({ kind: Type.Literal("passkey"), sealed: Type.String() }),
]);
export type NodeRequest = Readonly<Static<typeof NodeRequest>>;

const ofLease = { browser: BrowserId, lease: LeaseId };
const Fence = Type.Object({
  kind: Type.Literal("fence"),
  ...ofLease,
  claim: ClaimId,
  mode: Type.Enum(["none", "state"]),
});
const Cut = Type.Object({ kind: Type.Literal("cut"), ...ofLease, why: Type.String() });
/** The end of a lease, as its node hears of it. */
export const CutMessage = Type.Union([Fence, Cut]);
export const NodeMessage = Type.Union([
  Fence,
  Cut,
  /** What an acquire asks for: a start page, and what is captured. */
  Type.Object({
    kind: Type.Literal("start"),
    ...ofLease,
    url: Type.Optional(Type.String()),
    telemetry: Type.Optional(Type.String()),
    trace: Type.Optional(Type.String()),
  }),
  Type.Object({
    kind: Type.Literal("ask"),
    question: RequestId,
    control: ControlId,
    ...ofLease,
    what: NodeRequest,
  }),
]);
export type NodeMessage = Readonly<Static<typeof NodeMessage>>;
/** Redis may have lost writes, and lends nothing of the node there before it has registered. */
const RegisterMessage = Type.Object({ kind: Type.Literal("register"), partition: Partition });

export const controlMessageParser = parserOf("a message to a control", ControlMessage);
export const nodeMessageParser = parserOf("a message to a node", NodeMessage);
/** Reads what comes by Redis, where scripts tell a node what concerns no single lease. */
export const nodeHintParser = parserOf("a message to a node", Type.Union([NodeMessage, RegisterMessage]));

/** Carries messages; `onMessage` listeners must not throw. */
export interface Messages {
  toNode(node: NodeId, message: NodeMessage): Promise<void>;
  toControl(control: ControlId, message: ControlMessage): Promise<void>;
}
