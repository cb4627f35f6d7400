import type { Clock, Millis } from "../base/clock.js";
import type { NodeId } from "../base/ids.js";
import type { NodeStore } from "../pool/ports/node-store.js";

/**
 * Remembers where nodes are reached, as their last beats said. URLs may name an old address, because any
 * daemon can serve them.
 */
export class NodeDirectory {
  readonly #urls = new Map<NodeId, string>();
  readonly #stop: () => void;

  constructor(
    private readonly nodes: NodeStore,
    { clock, periodMs, onFault }: { clock: Clock; periodMs: Millis; onFault: (error: unknown) => void },
  ) {
    this.#stop = clock.every(periodMs, () => void this.refresh().catch(onFault));
  }

  find(node: NodeId): string | undefined {
    return this.#urls.get(node);
  }

  async refresh(): Promise<void> {
    const living = await this.nodes.living();
    this.#urls.clear();
    for (const { id, host, port, isSecure } of living)
      this.#urls.set(
        id,
        `${isSecure ? "https" : "http"}://${host.includes(":") ? `[${host}]` : host}:${port}`,
      );
  }

  close(): void {
    this.#stop();
  }
}
