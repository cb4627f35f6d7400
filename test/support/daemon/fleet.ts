import { type FakeChromium, type Knobs, makeFakeChromium, standIn } from "../browser/chromium-fake.js";
import { type DaemonProcess, spawnDaemon } from "./daemon-process.js";
import { DaemonPlace } from "./daemon-settings.js";
import { startRedis, type TestRedis } from "../store/redis.js";

export interface FleetNode {
  readonly daemon: DaemonProcess;
  readonly fake: FakeChromium;
}

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
  ): Promise<DaemonProcess> {
    return await this.#spawn(new DaemonPlace({ role: "control", redisUrl, file }));
  }

  async node(
    id: string,
    { knobs = {}, node = {}, ...file }: { knobs?: Knobs; node?: object; [section: string]: unknown } = {},
  ): Promise<FleetNode> {
    const fake = await makeFakeChromium(knobs);
    this.#fakes.push(fake);
    const settings = { drain: { limit_seconds: 0 }, ...standIn(fake), ...file, node: { id, ...node } };
    return {
      fake,
      daemon: await this.#spawn(new DaemonPlace({ role: "node", redisUrl: this.redis.url, file: settings })),
    };
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

  async #spawn(place: DaemonPlace): Promise<DaemonProcess> {
    const daemon = await spawnDaemon(place);
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
