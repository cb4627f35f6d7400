import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

interface Kept {
  readonly id: string;
  size: number;
  leased: number;
  body: Record<string, unknown>;
}

interface AskedOfPools {
  readonly method: string;
  readonly url: string;
  readonly body: Record<string, unknown>;
  readonly key: string;
}

/** Remuda's API, as far as the operator asks: pools in memory, whose browsers are there at once. */
export class TestPools {
  readonly pools = new Map<string, Kept>();
  readonly asked: string[] = [];
  /** The sizes that pools were given by changes. */
  readonly sizes: number[] = [];
  readonly leases = new Map<string, number>();
  /** Nodes on which something is lent that may outlast their drain. */
  readonly outlasting = new Set<string>();
  /** It is of the release that does not tell these. */
  isEarlier = false;
  /** What an operation, such as `DELETE /browser_pools/x`, waits for before it is done. */
  before: (asked: string) => Promise<void> | undefined = () => undefined;
  #made = 0;
  /** The pools that were made under keys. */
  readonly #keys = new Map<string, string>();
  /** Answers instead of it. */
  refuse: { status: number; code: string; message: string } | undefined;
  /** Something before it answers in its own words. */
  standIn: (asked: string) => { readonly status: number; readonly text: string } | undefined = () =>
    undefined;
  /** Answers what would make or change a pool. */
  refuseChanges: { status: number; code: string; message: string } | undefined;

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

  /** As somebody renames one by the API. */
  rename(name: string, to: string): void {
    const pool = this.pools.get(name);
    if (!pool || name === to || this.pools.has(to)) return;
    this.pools.delete(name);
    this.pools.set(to, pool);
    pool.body = { ...pool.body, name: to };
  }

  /** Holds up the first of such requests until the result is called. */
  holdUp(what: (asked: string) => boolean): { reached: Promise<void>; goOn: () => void } {
    let [goOn, reach] = [(): void => {}, (): void => {}];
    const reached = new Promise<void>((resolve) => (reach = resolve));
    const held = new Promise<void>((resolve) => (goOn = resolve));
    this.before = (asked) => {
      if (!what(asked)) return undefined;
      this.before = () => undefined;
      reach();
      return held;
    };
    return { reached, goOn };
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
    await this.before(`${method} ${url}`);
    const other = this.standIn(`${method} ${url}`);
    if (other) return void response.writeHead(other.status).end(other.text);
    const key = String(request.headers["idempotency-key"]);
    const [status, answer] = this.#act({ method, url, body, key });
    response.writeHead(status, { "content-type": "application/json" });
    response.end(answer && JSON.stringify(answer));
  }

  #act({ method, url, body, key }: AskedOfPools): readonly [number, object?] {
    if (this.refuse) return [this.refuse.status, this.refuse];
    if (url === "/scaling")
      return [200, { by_node: [...this.leases].map(([id, leased]) => this.#node(id, leased)) }];
    if (method !== "GET" && method !== "DELETE" && this.refuseChanges)
      return [this.refuseChanges.status, this.refuseChanges];
    if (method === "POST") return this.#create(String(body["name"]), body, key);
    const name = this.#nameOf(url.split("/")[2] ?? "");
    const found = this.pools.get(name);
    if (method === "PATCH" && found) return this.#change(name, found, body);
    if (method === "DELETE" && found) return this.#remove(name, found, body);
    return this.#view(name);
  }

  #change(name: string, found: Kept, body: Record<string, unknown>): readonly [number, object] {
    const to = typeof body["name"] === "string" ? body["name"] : name;
    if (to !== name && this.pools.has(to))
      return [409, { code: "name_taken", message: `A pool named ${to} exists` }];
    found.size = Number(body["size"]);
    this.sizes.push(found.size);
    found.body = { ...found.body, ...body };
    this.rename(name, to);
    return this.#view(to);
  }

  /** A key stands for the pool that was made under it, also when that is gone. */
  #create(name: string, body: Record<string, unknown>, key: string): readonly [number, object] {
    const earlier = this.#keys.get(key);
    if (earlier !== undefined) return this.#view(this.#nameOf(earlier));
    if (!this.pools.has(name)) this.#make(name, body);
    this.#keys.set(key, this.pools.get(name)?.id ?? "");
    return this.#view(name);
  }

  #make(name: string, body: Record<string, unknown>): void {
    this.#made += 1;
    const id = this.#made > 1 ? `id-of-${name}-${this.#made}` : `id-of-${name}`;
    this.pools.set(name, { id, size: Number(body["size"]), leased: 0, body });
  }

  #node(id: string, leased: number): object {
    return { id, leased, ...(!this.isEarlier && { outlasts_drain: this.outlasting.has(id) }) };
  }

  /** Pools are asked for by name or id. */
  #nameOf(ref: string): string {
    return [...this.pools].find(([, { id }]) => id === ref)?.[0] ?? ref;
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
        id: pool.id,
        name,
        acquired_count: pool.leased,
        available_count: pool.size - pool.leased,
        launching_count: 0,
        resetting_count: 0,
        waiting_count: 0,
        browser_pool_config: { ...pool.body, size: pool.size },
      },
    ];
  }
}
