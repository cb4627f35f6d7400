import { type FakeChromium, type Knobs, makeFakeChromium, standIn } from "../browser/chromium-fake.js";
import { type DaemonProcess, spawnDaemon } from "./daemon-process.js";
import { DaemonPlace } from "./daemon-settings.js";
import { startRedis, type TestRedis } from "../store/redis.js";

export interface FleetNode {
  readonly daemon: DaemonProcess;
  readonly fake: FakeChromium;
}

type Through = (place: DaemonPlace) => readonly string[];

/**
 * Daemons in processes of their own around one Redis; a fake Chromium on each node, which a test makes sick.
 */
export class Fleet {
  readonly #running = new Set<DaemonProcess>();
  readonly #fakes: FakeChromium[] = [];

  private constructor(readonly redis: TestRedis) {}

  static async open(): Promise<Fleet> {
    return new Fleet(await startRedis());
  }

  async control(
    file: Readonly<Record<string, unknown>> = {},
    redisUrl = this.redis.url,
    through?: Through,
  ): Promise<DaemonProcess> {
    const place = new DaemonPlace({ role: "control", redisUrl, file });
    return await this.#spawn(place, through?.(place));
  }

  /** `through`: a command that becomes the daemon of a place. */
  async node(
    id: string,
    {
      knobs = {},
      node = {},
      through,
      redisUrl = this.redis.url,
      ...file
    }: {
      knobs?: Knobs;
      node?: object;
      through?: Through;
      redisUrl?: string;
      [section: string]: unknown;
    } = {},
  ): Promise<FleetNode> {
    const fake = await makeFakeChromium(knobs);
    this.#fakes.push(fake);
    const settings = { drain: { limit_seconds: 0 }, ...standIn(fake), ...file, node: { id, ...node } };
    const place = new DaemonPlace({ role: "node", redisUrl, file: settings });
    return { fake, daemon: await this.#spawn(place, through?.(place)) };
  }

  /** Ends a daemon without a word; what it leaves is its next start's to clear. */
  async kill(daemon: DaemonProcess): Promise<void> {
    this.forget(daemon);
    await daemon.end("SIGKILL");
  }

  /** It ends by itself, or is ended by the test. */
  forget(daemon: DaemonProcess): void {
    this.#running.delete(daemon);
  }

  /** A killed daemon again, in its old place. */
  async again({ place }: DaemonProcess): Promise<DaemonProcess> {
    return await this.#spawn(place);
  }

  async close(): Promise<void> {
    // Nodes first: a control has nothing to wait for.
    for (const daemon of [...this.#running].toReversed()) {
      // One that a failing test has stopped would not hear that it is to end.
      daemon.signal("SIGCONT");
      await daemon.stop();
    }
    for (const fake of this.#fakes) await fake.remove();
    await this.redis.stop();
  }

  async #spawn(place: DaemonPlace, through: readonly string[] = []): Promise<DaemonProcess> {
    const daemon = await spawnDaemon(place, through);
    this.#running.add(daemon);
    return daemon;
  }
}

/** Where the browsers of a pool are: how many on each node. */
export async function spread(
  control: DaemonProcess,
  pool: string,
): Promise<Readonly<Record<string, number>>> {
  const on: Record<string, number> = {};
  for (const { node } of await control.browsersOf(pool)) on[node] = (on[node] ?? 0) + 1;
  return on;
}
