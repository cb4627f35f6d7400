import { Agent } from "node:http";
import { Agent as SecureAgent } from "node:https";
import type { NodeAddress } from "../ports.js";

const options = {
  keepAlive: true,
  /** Less than the 5 s after which a server of Node.js closes an idle connection. */
  timeout: 4000,
  /** To each node; others are closed after their answer, since a node takes so many connections only. */
  maxFreeSockets: 16,
};

/** Connections to other daemons that are kept for the next request, whoever asks. */
export class KeptConnections {
  readonly #plain = new Agent(options);
  readonly #secure = new SecureAgent(options);

  to({ isSecure }: NodeAddress): Agent {
    return isSecure ? this.#secure : this.#plain;
  }

  close(): void {
    this.#plain.destroy();
    this.#secure.destroy();
  }
}
