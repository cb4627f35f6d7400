import type { DaemonClient } from "../daemon/daemon.js";

/** An event as a reader of the stream has it. */
export interface FollowedEvent {
  readonly seq: number;
  readonly event: {
    readonly type: string;
    readonly data: {
      readonly command_id?: number;
      readonly telemetry_dropped?: number;
      readonly [field: string]: unknown;
    };
  };
}

/** Where a stream is read, and by whose key. */
type Place = Pick<DaemonClient, "url" | "apiKey">;

/**
 * Reads the stream of a session's events, and goes on after its last event at another daemon whenever it is
 * cut, until `stop` or the end of the session.
 */
export class StreamFollower {
  readonly told: FollowedEvent[] = [];
  /** Answers and cuts, one after the other. */
  readonly opened: number[] = [];
  #places: readonly Place[];
  #reading: AbortController | undefined;
  #isStopped = false;
  readonly over: Promise<void>;

  constructor(
    places: readonly Place[],
    private readonly session: string,
  ) {
    this.#places = places;
    this.over = this.#follow();
  }

  get lastSeq(): number {
    return this.told.at(-1)?.seq ?? 0;
  }

  /** Hangs up in the middle of whatever comes. */
  cut(): void {
    this.#reading?.abort();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.cut();
    await this.over;
  }

  async #follow(): Promise<void> {
    while (!this.#isStopped) {
      const [place] = this.#places;
      if (!place) return;
      this.#places = [...this.#places.slice(1), place];
      const status = await this.#read(place).catch(() => 0);
      this.opened.push(status);
      if (status === 404) return;
      if (status !== 200) await new Promise((resolve) => setImmediate(resolve));
    }
  }

  async #read({ url, apiKey }: Place): Promise<number> {
    this.#reading = new AbortController();
    const { signal } = this.#reading;
    const from = this.lastSeq > 0 ? { "last-event-id": String(this.lastSeq) } : {};
    const response = await fetch(`${url}/browsers/${this.session}/telemetry/stream?replay=all`, {
      headers: { authorization: `Bearer ${apiKey}`, ...from },
      signal,
    });
    if (response.status !== 200 || !response.body) return response.status;
    try {
      await this.#take(response.body);
    } catch {
      // Cut by us, or by whatever the test does to the daemon.
    }
    return 200;
  }

  async #take(body: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    let left = "";
    for await (const bytes of body) {
      const frames = (left + decoder.decode(bytes, { stream: true })).split("\n\n");
      left = frames.pop() ?? "";
      this.told.push(...frames.flatMap(eventIn));
    }
  }
}

/** None where it is a comment. */
function eventIn(frame: string): readonly FollowedEvent[] {
  const json = /^data: (.*)$/m.exec(frame)?.[1];
  return json === undefined ? [] : [JSON.parse(json) as FollowedEvent];
}

/** The numbers that come again or go back; none may. */
export const wrongNumbers = (told: readonly FollowedEvent[]): readonly number[] =>
  told.map(({ seq }) => seq).filter((seq, place, all) => place > 0 && seq <= (all[place - 1] ?? 0));

/** How many numbers are missing between the first and the last. */
export const gapsIn = (told: readonly FollowedEvent[]): number =>
  (told.at(-1)?.seq ?? 0) - (told[0]?.seq ?? 1) + 1 - told.length;

/** The clients' ids of the commands that were told, in the order of telling. */
export const commandsIn = (told: readonly FollowedEvent[]): readonly number[] =>
  told.flatMap(({ event }) => (event.type === "cdp_command" ? [event.data.command_id ?? -1] : []));
