import type { Server } from "node:http";

/** Ends a server with every connection that it has; resolves when nothing of it is left. */
export const endServer = (server: Server): Promise<void> =>
  new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
