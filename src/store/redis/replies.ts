import type { Millis } from "../../base/clock.js";

/**
 * The words that each script answers with. Its header (REPLY) says what they mean; a test compares the two.
 */
export const replyWords = {
  admit: ["judged", "noted", "expired", "unknown"],
  "admit-caller": ["admitted", "limited", "elsewhere"],
  "ended-keys": ["ended"],
  "create-key": ["created", "ended", "many", "same", "mismatch"],
  "given-key": ["none", "same", "mismatch"],
  "delete-key": ["deleted", "missing"],
  "rename-key": ["renamed", "missing"],
  "rotate-key": ["rotated", "ended", "short", "missing", "many", "same", "mismatch"],
  "change-project": ["changed", "missing", "taken"],
  "create-project": ["created", "taken", "many"],
  "remove-project": ["removed", "missing", "active"],
  "begin-launch": ["begun", "stale"],
  "claim-standby": ["claimed", "none"],
  "browser-ready": ["freed"],
  "browser-ready-warm": ["freed", "other"],
  "launch-failed": ["failed", "stale"],
  launched: ["launched", "stale"],
  "read-browser": ["found", "missing"],
  "read-some-browsers": ["records"],
  recycle: ["recycled", "indexing"],
  "remove-browser": ["gone", "stale"],
  "restore-browsers": ["restored"],
  "retire-browser": ["retiring", "already", "unknown"],
  "retire-standby": ["retired"],
  acquire: ["granted", "waiting", "none", "full", "missing", "unsupported", "mismatch", "over"],
  "acquire-warm": ["granted", "over", "other"],
  "change-lease": ["touched", "changed", "superseded", "unknown"],
  confirm: ["confirmed"],
  connect: ["connected", "over"],
  "control-beat": ["accepted"],
  "create-session": ["claimed", "waiting", "granted", "mismatch", "over", "full", "none", "superseded"],
  expire: ["expired", "kept"],
  "find-lease": ["held", "none"],
  "lease-end": ["ended", "unknown"],
  "network-applied": ["applied", "stale"],
  "note-usage": ["noted"],
  rejoin: ["rejoined"],
  release: ["released", "saving", "already", "superseded", "unknown", "elsewhere"],
  "release-warm": ["released", "other"],
  undo: ["undone", "kept", "opened", "over"],
  "unknown-lease": ["kept", "retiring", "already", "held", "unknown"],
  withdraw: ["withdrawn", "kept", "superseded", "granted", "unknown"],
  "clear-node": ["cleared", "indexing"],
  "count-by-node": ["spread", "indexing"],
  "living-nodes": ["nodes"],
  "lose-nodes": ["lost"],
  "join-dataset": ["same", "joined", "emptied", "late", "foreign"],
  "node-beat": ["accepted", "lost", "taken", "other"],
  "node-browsers": ["same", "browsers", "indexing"],
  "reserve-room": ["reserved", "full"],
  "drain-node": ["draining", "unknown"],
  "register-node": ["registered", "known"],
  "reopen-node": ["reopened", "none"],
  "share-ticks": ["sharing"],
  "silence-node": ["silenced", "heard", "none"],
  "ticks-steady": ["steady"],
  "claim-launches": ["claimed", "none"],
  "create-pool": ["created"],
  "delete-pool": ["deleted", "leased", "missing"],
  flush: ["flushed", "busy", "missing"],
  "launch-demand": ["wanted"],
  "read-pool": ["pool"],
  refresh: ["refreshed", "missing"],
  "restore-pool": ["restored", "there"],
  "retire-left": ["more", "rid"],
  reap: ["reaped", "missing"],
  "update-pool": ["updated", "changed", "busy", "missing"],
  "free-reservation": ["freed"],
  "reserve-browsers": ["reserved", "many", "pooled", "concurrent", "ofProject"],
  "set-limit": ["set", "changed"],
  "settle-project": ["settled", "kept"],
  "settle-reservation": ["settled", "kept"],
  "take-request": ["taken", "refused"],
  "append-events": ["appended", "miscounted"],
  "clear-stream": ["cleared"],
  "forget-stream": ["forgotten"],
  "note-stream": ["noted"],
  "read-events": ["events"],
  "append-entries": ["appended", "full"],
  "commit-segment": ["committed", "stale"],
  "note-intent": ["noted", "full"],
  "settle-intents": ["settled"],
  "change-destination": ["changed", "stale", "missing"],
  "create-destination": ["created", "many"],
  "delete-destination": ["deleted", "missing"],
  "fail-export": ["noted", "stale"],
  "move-cursor": ["moved", "stale"],
  "change-otlp-destination": ["changed", "missing", "stale", "taken"],
  "change-proxy": ["changed", "missing"],
  "commit-profile": ["committed", "missing"],
  "create-extension": ["created", "taken", "many"],
  "create-otlp-destination": ["created", "taken", "many"],
  "create-profile": ["created", "taken", "many"],
  "create-proxy": ["created", "many"],
  "drop-pool": ["dropped"],
  "open-pool": ["opened"],
  "free-name": ["freed", "kept"],
  "note-otlp-delivery": ["noted", "missing"],
  "keep-recording": ["kept"],
  "forget-key": ["forgotten", "kept"],
  "remember-key": ["new", "same", "mismatch"],
  "remove-extension": ["removed", "missing"],
  "remove-otlp-destination": ["removed", "missing"],
  "remove-profile": ["removed", "missing"],
  "rename-profile": ["changed", "missing", "taken"],
  "reserve-name": ["reserved", "renewed", "taken"],
  "store-tombstones": ["stored"],
  "drop-moved-tombstones": ["dropped"],
  "use-extension": ["noted", "missing"],
  "use-profile": ["noted", "missing"],
  "add-vault-item": ["created", "found", "missing", "many", "full"],
  "change-vault-item": ["changed", "stale", "missing", "used", "expired", "full"],
  "change-vault-keys": ["changed", "stale"],
  "count-vault-bytes": ["counted", "missing"],
  "create-vault": ["created", "found", "many"],
  "note-vault-event": ["noted", "missing"],
  "remove-vault": ["removed", "missing"],
  "remove-vault-item": ["removed", "missing"],
  "renew-collection-link": ["renewed", "kept", "stale"],
} as const satisfies Readonly<Record<string, readonly string[]>>;

export type ScriptName = keyof typeof replyWords;
type ReplyWord<Name extends ScriptName> = (typeof replyWords)[Name][number];

/** What a script answered: its word, its payload, Redis's time in ms, and what is left to be done. */
export interface ScriptReply<Name extends ScriptName = ScriptName> {
  readonly kind: ReplyWord<Name>;
  readonly payload: string;
  readonly at: Millis;
  readonly effects: string;
}

/** What a command answered that has judged an API key first, and what it tells of the key's rate. */
export type JudgedReply<Name extends ScriptName> = ScriptReply<Name> & { readonly rate: string };

/** Undefined where the key was not good, so that the command was not run. */
export function parseJudged<const Name extends ScriptName>(
  name: Name,
  reply: unknown,
): JudgedReply<Name> | undefined {
  if (Array.isArray(reply) && reply[0] === "unjudged") return undefined;
  const { kind, payload, at, effects } = parseReply(name, reply);
  return { kind, payload, at, effects, rate: textAt(reply as readonly unknown[], 4) };
}

/** Throws where a script has not answered as its header says. */
export function parseReply<const Name extends ScriptName>(name: Name, reply: unknown): ScriptReply<Name> {
  if (!Array.isArray(reply)) throw new Error(`script ${name} answered ${typeof reply}`);
  const words: readonly ReplyWord<Name>[] = replyWords[name];
  const kind = words[words.indexOf(textAt(reply, 0) as ReplyWord<Name>)];
  if (kind === undefined) throw new Error(`script ${name} answered ${JSON.stringify(textAt(reply, 0))}`);
  return { kind, payload: textAt(reply, 1), at: Number(textAt(reply, 2)), effects: textAt(reply, 3) };
}

const textAt = (reply: readonly unknown[], place: number): string => String(reply[place] ?? "");
