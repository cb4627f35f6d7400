import type { Server } from "node:net";
import { CannotStart } from "../cannot-start.js";

interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/**
 * Resolves when the server listens. Where the machine does not let it, the fault says which setting helps.
 */
export const listenOn = (server: Server, address: ListenAddress): Promise<void> =>
  new Promise((resolve, reject) => {
    const refuse = (error: NodeJS.ErrnoException): void => reject(inWords(error, address));
    server.once("error", refuse);
    server.listen(address, () => {
      server.off("error", refuse);
      resolve();
    });
  });

function inWords(error: NodeJS.ErrnoException, { host, port }: ListenAddress): Error {
  switch (error.code) {
    case "EADDRINUSE":
      return new CannotStart(
        `port ${port} of ${host} is taken by another program: ` +
          "stop that one, or name another port in REMUDA_PORT (server.port)",
      );
    case "EACCES":
      return new CannotStart(
        `this user may not listen on port ${port} of ${host}: name another port in REMUDA_PORT (server.port)`,
      );
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return new CannotStart(
        `${host} is no address of this machine: name one that is in REMUDA_HOST (server.host)`,
      );
    default:
      return error;
  }
}
