/** A session that is over for whoever had it. */
interface LeftSession {
  readonly id: string;
  /** Sessions on pages hang below it, which end with it. */
  readonly hasPages: boolean;
}

/** A session that Chromium is to end later, with all that hang below it. */
export interface LateDetach {
  /** It comes first. */
  readonly sessions: readonly LeftSession[];
  /** Sends a command on one of them. */
  ask(method: string, params: object, session: string): Promise<unknown>;
  detach(): Promise<void>;
}

/** What one browser keeps at most; more are ended at once. */
const mostSessions = 200;
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
  #holders = 0;
  #sessions = 0;

  get isHolding(): boolean {
    return this.#holders > 0;
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
    const { sessions, ask } = left;
    if (!this.isHolding || this.#sessions + sessions.length > mostSessions) return false;
    this.#late.push(left);
    this.#sessions += sessions.length;
    for (const { id, hasPages } of sessions)
      for (const [method, params] of hasPages ? onBrowser : onPage) ask(method, params, id).catch(() => {});
    return true;
  }

  async #detachAll(): Promise<void> {
    this.#sessions = 0;
    // One whose page has gone has ended already.
    await Promise.allSettled(this.#late.splice(0).map((left) => left.detach()));
  }
}

/** Nothing may wait for a session that nobody answers for. */
const silence: readonly (readonly [method: string, params: object])[] = [
  ["Runtime.runIfWaitingForDebugger", {}],
  ...leftDomains.map((domain) => [`${domain}.disable`, {}] as const),
];
const onPage = [["Target.setAutoAttach", { ...attachNothing, autoAttach: false }], ...silence] as const;
/** To attach no more at all would end the sessions on pages that it has attached by itself. */
const onBrowser = [
  ["Target.setAutoAttach", { ...attachNothing, autoAttach: true }],
  ["Target.setDiscoverTargets", { discover: false }],
  ["Tracing.end", {}],
  ...silence,
] as const;
