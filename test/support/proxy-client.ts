import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { processesOf } from "./browser-processes.js";

/** The port of a browser's egress in the proxy tier, as its command line names it. */
export async function proxyPortOf(scratchDirectory: string, session: string): Promise<number> {
  const { main } = await processesOf(scratchDirectory, session);
  const command = await readFile(`/proc/${main}/cmdline`, "latin1");
  return Number(/--proxy-server=http:\/\/127\.0\.0\.1:(\d+)/.exec(command)?.[1]);
}

/** A browser's worth of requests: it asks for `url` over and over, plainly and through tunnels, until it is stopped. */
export class ProxyClient {
  #isStopped = false;
  #socket: Socket | undefined;
  readonly #done: Promise<void>;

  constructor(private readonly port: number, private readonly ask: { host: string; path: string; byTunnel: boolean }) {
    this.#done = this.#run();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#socket?.destroy();
    await this.#done;
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) await this.#connection().catch(() => {});
  }

  /** One connection to the proxy, used until it ends. */
  async #connection(): Promise<void> {
    const { host, path, byTunnel } = this.ask;
    const socket = connect(this.port, "127.0.0.1");
    this.#socket = socket;
    const ended = once(socket, "close");
    socket.on("error", () => {});
    const exchange = async (text: string): Promise<string> => {
      socket.write(text);
      const [answer] = (await Promise.race([once(socket, "data"), ended.then(() => [""])])) as [Buffer | string];
      return answer.toString();
    };
    if (byTunnel && !(await exchange(`CONNECT ${host} HTTP/1.1\r\nHost: ${host}\r\n\r\n`)).includes("200")) return void socket.destroy();
    const line = byTunnel ? path : `http://${host}${path}`;
    while (!this.#isStopped && !socket.destroyed) {
      const answer = await exchange(`GET ${line} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
      if (!answer.includes("200")) break;
    }
    socket.destroy();
  }
}
