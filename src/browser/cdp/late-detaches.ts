/** A session that is over for whoever had it. */
interface LeftSession {
  readonly id: string;
  /** Sessions on pages hang below it, which end with it. */
  readonly hasPages: boolean;
  /** The domains of the commands that were sent on it; absent where that is not known. */
  readonly domains?: ReadonlySet<string> | undefined;
  /** The session above it, where it may be one that is not flat: it hears only messages by way of that. */
  readonly by?: string | undefined;
}

/** A session that Chromium is to end later, with all that hang below it. */
interface LateDetach {
  /** It comes first. */
  readonly sessions: readonly LeftSession[];
  detach(): Promise<void>;
}

/**
 * What a client can switch on for a session. Those that have something wait for an answer come first.
 * WebAuthn is left out: to disable it takes the page's passkey, as the end of the session would.
 */
export const leftDomains: readonly string[] = `
  Fetch Debugger Page Network Runtime DeviceAccess FedCm Overlay Accessibility Animation Audits Autofill
  BluetoothEmulation CSS Cast Console DOM DOMSnapshot DOMStorage EventBreakpoints HeadlessExperimental
  HeapProfiler IndexedDB Inspector LayerTree Log Media Performance Preload Profiler Security ServiceWorker
  SmartCardEmulation WebAudio WebMCP`
  .trim()
  .split(/\s+/);

const attachNothing = { waitForDebuggerOnStart: false, flatten: true, filter: [{ exclude: true }] };

/**
 * Sessions on pages whose end is put off. Chromium 156 takes its virtual authenticators from a page whenever
 * any session on that page ends; a page that asks for its passkey just then is never answered. So while a
 * passkey is armed such a session only falls silent, and ends with the others when that is over.
 */
export class LateDetaches {
  readonly #late: LateDetach[] = [];
  readonly #sessions = new Set<string>();
  #holders = 0;
  #lastId = 0;

  /** `send` writes to the pipe. */
  constructor(private readonly send: (text: string) => void) {}

  get isHolding(): boolean {
    return this.#holders > 0;
  }

  /** The sessions whose end is put off. */
  get count(): number {
    return this.#sessions.size;
  }

  has(session: string): boolean {
    return this.#sessions.has(session);
  }

  /** Until the returned function is called, which resolves when all that were put off have ended. */
  hold(): () => Promise<void> {
    this.#holders += 1;
    let release = async (): Promise<void> => {
      release = () => Promise.resolve();
      this.#holders -= 1;
      if (this.#holders === 0) await this.#detachAll();
    };
    return () => release();
  }

  /** False where it has to be ended now. */
  takes(left: LateDetach): boolean {
    if (!this.isHolding) return false;
    this.#late.push(left);
    for (const session of left.sessions) {
      this.#sessions.add(session.id);
      const commands = silencing(session);
      this.#silence(session.id, commands);
      if (session.by !== undefined) this.#silence(session.by, commands.map(carriedTo(session.id)));
    }
    return true;
  }

  /** What it has attached just before it was silenced goes on, too. */
  attached(session: string): void {
    this.#silence(session, [going]);
  }

  /** A client may leave a thousand sessions at once, so all commands of one are written at once. */
  #silence(sessionId: string, commands: Commands): void {
    const written = commands.map(([method, params]) =>
      JSON.stringify({ id: this.#nextId(), method, params, sessionId }),
    );
    this.send(written.join("\0"));
  }

  /** Nobody else's are below 0, so nobody reads the answers. */
  #nextId(): number {
    this.#lastId = (this.#lastId - 1) % 2 ** 30;
    return this.#lastId;
  }

  async #detachAll(): Promise<void> {
    this.#sessions.clear();
    // One whose page has gone has ended already.
    await Promise.allSettled(this.#late.splice(0).map((left) => left.detach()));
  }
}

type Commands = readonly (readonly [method: string, params: object])[];

/** Nothing may wait for a session that nobody answers for. */
const going: Commands[number] = ["Runtime.runIfWaitingForDebugger", {}];
const onPage: Commands = [
  ["Target.setAutoAttach", { ...attachNothing, autoAttach: false }],
  ["Tracing.end", {}],
  ...leftDomains.map((domain) => [`${domain}.disable`, {}] as const),
];
/** To attach no more at all would end the sessions on pages that it has attached by itself. */
const onBrowser: Commands = [
  ["Target.setAutoAttach", { ...attachNothing, autoAttach: true }],
  ["Target.setDiscoverTargets", { discover: false }],
  ...onPage.slice(1),
];

const carriedTo =
  (sessionId: string) =>
  ([method, params]: Commands[number], index: number): Commands[number] => [
    "Target.sendMessageToTarget",
    { sessionId, message: JSON.stringify({ id: -1 - index, method, params }) },
  ];

/** Chromium takes a third of a millisecond for all of them, so what was never switched on is left out. */
const silencing = ({ hasPages, domains }: LeftSession): Commands => [
  going,
  ...(hasPages ? onBrowser : onPage).filter(
    ([method]) => domains?.has(method.slice(0, method.indexOf("."))) ?? true,
  ),
];
