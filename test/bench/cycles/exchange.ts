/** What a client is asked to do; all workers do the same, each one cycle after the other. */
export interface Work {
  readonly url: string;
  readonly workers: number;
  /** Cycles that go before those that count. */
  readonly warmup: number;
  readonly cycles: number;
  /**
   * Where the processor time of the measured side is read: the file of its group, and processes told apart
   * within it.
   */
  readonly usageFile?: string;
  readonly pids: readonly number[];
  readonly way: Lending | Launching;
}

/** A browser of the daemon's pool. */
export interface Lending {
  readonly kind: "lend";
  readonly origin: string;
  readonly key: string;
  readonly pool: string;
}

/** A browser that Playwright launches by itself, with its own switches. */
export interface Launching {
  readonly kind: "launch";
  readonly executable: string;
  readonly sandbox: boolean;
}

/** The figures of the cycles that count. */
export interface Done {
  readonly tookMs: number;
  /** The client itself. */
  readonly clientSeconds: number;
  /** The processor time of the whole group; undefined where there is none. */
  readonly groupSeconds?: number;
  /** The processor time of each of the processes asked for. */
  readonly pidSeconds: readonly number[];
}
