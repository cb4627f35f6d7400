import type { Server } from "node:net";
import { CannotStart } from "../cannot-start.js";

interface ListenAddress {
  readonly host: string;
  readonly port: number;
  /** The settings that say both; left out: the server's. */
  readonly section?: string;
}

const serverSettings = { host: "REMUDA_HOST (server.host)", port: "REMUDA_PORT (server.port)" } as const;

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

function inWords(error: NodeJS.ErrnoException, { host, port, section }: ListenAddress): Error {
  const settings =
    section === undefined ? serverSettings : { host: `${section}.host`, port: `${section}.port` };
  switch (error.code) {
    case "EADDRINUSE":
      return new CannotStart(
        `port ${port} of ${host} is taken by another program: ` +
          `stop that one, or name another port in ${settings.port}`,
      );
    case "EACCES":
      return new CannotStart(
        `this user may not listen on port ${port} of ${host}: name another port in ${settings.port}`,
      );
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return new CannotStart(`${host} is no address of this machine: name one that is in ${settings.host}`);
    default:
      return error;
  }
}
