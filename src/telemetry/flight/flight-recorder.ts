import { type Clock, type Millis, timestampOf } from "../../base/clock.js";
import type { BrowserId, LeaseId } from "../../base/ids.js";
import { isRecord } from "../../base/is-record.js";
import type { FlightRecording, RecordingReason } from "../../spec/flight-recording.js";
import type { SeenEvent } from "../event.js";
import { methodName } from "./protocol-methods.js";

/** Entries that are kept of each kind; a recording has at most 32 KiB of JSON. */
const kept = { states: 32, commands: 64, requests: 32, errors: 32, samples: 24 } as const;
const longestText = 1000;
/** The longest host name that there may be. */
const longestHost = 253;
/** No name of the protocol is longer. */
const longestMethod = 64;
/** Samples stand so far apart; of those between them the greatest is kept. */
const samplePeriodMs: Millis = 5000;
/** A browser that takes this share of its limit is under pressure. */
const pressedShare = 0.9;

/** What the kernel tells of a browser's memory. */
interface MemoryFacts {
  readonly bytes: number;
  readonly peakBytes?: number;
  readonly outOfMemoryKills?: number;
}

/** How its Chromium ended. */
interface EndedProcess {
  readonly code: number | null;
  readonly signal: string | null;
  readonly memory?: MemoryFacts | undefined;
}

interface Repeated {
  readonly at: Millis;
  readonly host: string;
  readonly reason: string;
  count: number;
}

interface Sample {
  at: Millis;
  bytes: number;
}

/**
 * The last of what happened in one browser, always on: it costs a few stores into arrays. It has no secret:
 * of a command its name in the protocol, of a request its host. What a holder did is forgotten when the next
 * one comes, and told of the present holder only.
 */
export class FlightRecorder {
  readonly #states = new Ring<{ readonly at: Millis; readonly state: string }>(kept.states);
  readonly #methods = Array.from({ length: kept.commands }, () => "");
  readonly #sentAt = new Float64Array(kept.commands);
  readonly #requests = new Ring<Repeated>(kept.requests);
  readonly #errors = new Ring<Repeated>(kept.errors);
  readonly #samples = new Ring<Sample>(kept.samples);
  #sent = 0;
  #lease: LeaseId | undefined;
  #memory: MemoryFacts | undefined;
  #isPressed = false;
  #exit: FlightRecording["exit"];

  constructor(
    readonly browser: BrowserId,
    private readonly parts: { readonly clock: Clock; readonly memoryLimitBytes: number },
  ) {}

  /** What the browser has come to, in a word. */
  state(state: string): void {
    this.#states.push({ at: this.parts.clock.now(), state });
  }

  /** A new holder: nothing is left of what the former did. */
  begins(lease: LeaseId): void {
    this.#lease = lease;
    this.#sent = 0;
    for (const ring of [this.#requests, this.#errors, this.#samples]) ring.clear();
    this.state("leased");
  }

  /** What a holder did is told no more. */
  ends(lease: LeaseId): void {
    if (this.#lease !== lease) return;
    this.#lease = undefined;
    this.state("released");
  }

  /** A command went to Chromium. This runs once for each, so its name is looked at only when it is told. */
  sent(method: string): void {
    const at = this.#sent % kept.commands;
    this.#methods[at] = method.length <= longestMethod ? method : "";
    this.#sentAt[at] = this.parts.clock.now();
    this.#sent += 1;
  }

  /** A request was denied, or could not be carried out. */
  request(host: string, reason: string): void {
    this.#repeat(this.#requests, host, reason);
  }

  consoleError(host: string): void {
    this.#repeat(this.#errors, host, "");
  }

  /** What its processes hold. */
  memory(facts: MemoryFacts): void {
    const isPressed = facts.bytes >= pressedShare * this.parts.memoryLimitBytes;
    if (isPressed && !this.#isPressed) this.state("memory_pressure");
    this.#isPressed = isPressed;
    this.#note(facts);
    this.#sample(facts.bytes);
  }

  /** Its Chromium has ended: `memory` is what that had held. */
  exited({ code, signal, memory }: EndedProcess): void {
    if (memory) this.#note(memory);
    this.state("exited");
    this.#exit = { ...(code !== null && { code }), ...(signal !== null && { signal }) };
  }

  /** What is to be told to the holder of `lease`; only the browser's own where it has none. */
  recording(
    reason: RecordingReason,
    { lease, error }: { readonly lease?: LeaseId | undefined; readonly error?: string } = {},
  ): FlightRecording {
    const isTheirs = lease !== undefined && lease === this.#lease;
    return {
      session_id: this.browser,
      recorded_at: timestampOf(this.parts.clock.now()),
      reason,
      ...(error !== undefined && { error: error.slice(0, longestText) }),
      ...(this.#exit && { exit: this.#exit }),
      states: this.#states.list().map(({ at, state }) => ({ at: timestampOf(at), state })),
      commands: isTheirs ? this.#commands() : { count: 0, last: [] },
      failed_requests: isTheirs ? this.#requests.list().map(told) : [],
      console_errors: isTheirs
        ? this.#errors.list().map(({ at, host, count }) => ({ at: timestampOf(at), host, count }))
        : [],
      memory: this.#memoryTold(isTheirs),
    };
  }

  #commands(): FlightRecording["commands"] {
    const first = Math.max(0, this.#sent - kept.commands);
    const last = Array.from({ length: this.#sent - first }, (_, at) => (first + at) % kept.commands).map(
      (at) => ({ at: timestampOf(this.#sentAt[at] ?? 0), method: methodName(this.#methods[at] ?? "") }),
    );
    return { count: this.#sent, last };
  }

  #memoryTold(isTheirs: boolean): FlightRecording["memory"] {
    const { peakBytes, outOfMemoryKills } = this.#memory ?? {};
    return {
      limit_bytes: this.parts.memoryLimitBytes,
      ...(peakBytes !== undefined && { peak_bytes: peakBytes }),
      ...(outOfMemoryKills !== undefined && { out_of_memory_kills: outOfMemoryKills }),
      samples: isTheirs ? this.#samples.list().map(({ at, bytes }) => ({ at: timestampOf(at), bytes })) : [],
    };
  }

  #note(facts: MemoryFacts): void {
    const { outOfMemoryKills: before = 0 } = this.#memory ?? {};
    if ((facts.outOfMemoryKills ?? 0) > before) this.state("out_of_memory");
    this.#memory = facts;
  }

  #repeat(ring: Ring<Repeated>, host: string, reason: string): void {
    const { last } = ring;
    if (last?.host === host && last.reason === reason) last.count += 1;
    else ring.push({ at: this.parts.clock.now(), host: host.slice(0, longestHost), reason, count: 1 });
  }

  #sample(bytes: number): void {
    const at = this.parts.clock.now();
    const { last } = this.#samples;
    if (last === undefined || Math.abs(at - last.at) >= samplePeriodMs) this.#samples.push({ at, bytes });
    else last.bytes = Math.max(last.bytes, bytes);
  }
}

const told = ({ at, host, reason, count }: Repeated): FlightRecording["failed_requests"][number] => ({
  at: timestampOf(at),
  host,
  reason,
  count,
});

/** The last so many entries. */
class Ring<Entry> {
  #entries: Entry[] = [];
  #next = 0;

  constructor(private readonly most: number) {}

  push(entry: Entry): void {
    this.#entries[this.#next] = entry;
    this.#next = (this.#next + 1) % this.most;
  }

  get last(): Entry | undefined {
    return this.#entries.at(this.#next - 1);
  }

  /** The oldest first. */
  list(): readonly Entry[] {
    const isFull = this.#entries.length === this.most;
    return isFull
      ? [...this.#entries.slice(this.#next), ...this.#entries.slice(0, this.#next)]
      : this.#entries;
  }

  clear(): void {
    this.#entries = [];
    this.#next = 0;
  }
}

/** Stands for what has no host, such as `data:` and what a client evaluates in an empty page. */
const noHost = "other";

/** The host of the script that reported an error, or of the document where the event names no script. */
export function scriptHostOf({ data }: SeenEvent): string {
  const { source_url: source, stack_trace: stack, url } = data;
  const frames =
    isRecord(stack) && Array.isArray(stack["callFrames"]) ? (stack["callFrames"] as unknown[]) : [];
  const [top] = frames;
  const addresses = [source, isRecord(top) ? top["url"] : undefined, url];
  const address = addresses.find((each): each is string => typeof each === "string" && each !== "");
  if (address === undefined || !URL.canParse(address)) return noHost;
  return new URL(address).hostname || noHost;
}
