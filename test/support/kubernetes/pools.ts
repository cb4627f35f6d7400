import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

interface Kept {
  size: number;
  leased: number;
  body: Record<string, unknown>;
}

/** Remuda's API, as far as the operator asks: pools in memory, whose browsers are there at once. */
export class TestPools {
  readonly pools = new Map<string, Kept>();
  readonly asked: string[] = [];
  readonly leases = new Map<string, number>();
  /** Answers instead of it. */
  refuse: { status: number; code: string; message: string } | undefined;

  private constructor(private readonly server: ReturnType<typeof createServer>) {}

  static async open(): Promise<TestPools> {
    const server = createServer();
    const pools = new TestPools(server);
    server.on("request", (request, response) => void pools.#answer(request, response));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return pools;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise<void>((resolve) => this.server.close(() => resolve()));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const body = text === "" ? {} : (JSON.parse(text) as Record<string, unknown>);
    const { method = "", url = "" } = request;
    this.asked.push(`${method} ${url}`);
    const [status, answer] = this.#act(method, url, body);
    response.writeHead(status, { "content-type": "application/json" });
    response.end(answer && JSON.stringify(answer));
  }

  #act(method: string, url: string, body: Record<string, unknown>): readonly [number, object?] {
    if (this.refuse) return [this.refuse.status, this.refuse];
    if (url === "/scaling")
      return [200, { by_node: [...this.leases].map(([id, leased]) => ({ id, leased })) }];
    const name = method === "POST" ? String(body["name"]) : (url.split("/")[2] ?? "");
    const found = this.pools.get(name);
    if (method === "POST" && !found) this.pools.set(name, { size: Number(body["size"]), leased: 0, body });
    if (method === "PATCH" && found) {
      found.size = Number(body["size"]);
      found.body = { ...found.body, ...body };
    }
    if (method === "DELETE" && found) return this.#remove(name, found, body);
    return this.#view(name);
  }

  #remove(name: string, found: Kept, body: Record<string, unknown>): readonly [number, object?] {
    if (found.leased > 0 && body["force"] !== true)
      return [400, { code: "pool_in_use", message: "Browsers of the pool are leased" }];
    this.pools.delete(name);
    return [204];
  }

  #view(name: string): readonly [number, object] {
    const pool = this.pools.get(name);
    if (!pool) return [404, { code: "pool_not_found", message: "There is no such pool" }];
    return [
      200,
      {
        id: `id-of-${name}`,
        acquired_count: pool.leased,
        available_count: pool.size - pool.leased,
        launching_count: 0,
        resetting_count: 0,
        waiting_count: 0,
        browser_pool_config: { size: pool.size },
      },
    ];
  }
}
