import { Agent, request, type IncomingMessage } from "node:http";

export interface Answer {
  readonly status: number;
  readonly body: string;
}

/**
 * One client: a keep-alive connection of its own, one request at a time, by the HTTP client that Node.js has.
 */
export class Line {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #to: { readonly host: string; readonly port: string };
  readonly #headers: Readonly<Record<string, string>>;

  private constructor(origin: string, key: string) {
    const { hostname, port } = new URL(origin);
    this.#to = { host: hostname, port };
    this.#headers = {
      "content-type": "application/json",
      ...(key === "" ? {} : { authorization: `Bearer ${key}` }),
    };
  }

  /**
   * `origin` as `http://127.0.0.1:<port>`; `key` is the API key, if one is needed. Connected when it
   * resolves.
   */
  static async open(origin: string, key = ""): Promise<Line> {
    const line = new Line(origin, key);
    await line.get("/");
    return line;
  }

  post(path: string, body: string): Promise<Answer> {
    return this.ask("POST", path, body);
  }

  get(path: string): Promise<Answer> {
    return this.ask("GET", path);
  }

  delete(path: string, body: string): Promise<Answer> {
    return this.ask("DELETE", path, body);
  }

  close(): void {
    this.#agent.destroy();
  }

  ask(method: string, path: string, body = ""): Promise<Answer> {
    const headers =
      body === "" ? this.#headers : { ...this.#headers, "content-length": Buffer.byteLength(body) };
    return new Promise((resolve, reject) => {
      request({ ...this.#to, agent: this.#agent, method, path, headers }, (reply) =>
        read(reply).then(resolve, reject),
      )
        .once("error", reject)
        .end(body);
    });
  }
}

const read = (reply: IncomingMessage): Promise<Answer> =>
  new Promise((resolve, reject) => {
    let body = "";
    reply
      .setEncoding("utf8")
      .on("data", (text: string) => (body += text))
      .once("error", reject);
    reply.once("end", () => resolve({ status: reply.statusCode ?? 0, body }));
  });
