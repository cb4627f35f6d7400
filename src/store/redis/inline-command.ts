import { connect } from "node:net";
import type { Clock } from "../../base/clock.js";

const limitMs = 1000;

/**
 * The first line of Redis's answer to one inline command, or undefined where nothing answers. For before
 * there is a client.
 */
export const inlineCommand = (socket: string, command: string, clock: Clock): Promise<string | undefined> =>
  new Promise((resolve) => {
    const connection = connect(socket);
    const finish = (answer?: string): void => {
      cancel();
      connection.destroy();
      resolve(answer);
    };
    const cancel = clock.after(limitMs, () => finish());
    connection.on("connect", () => connection.write(`${command}\r\n`));
    connection.on("data", (reply) => finish(reply.toString("latin1").split("\r\n")[0]));
    connection.on("error", () => finish());
    connection.on("close", () => finish());
  });
