import type { AddressInfo } from "node:net";
import { TimeLimitReached, within } from "../base/deadline.js";
import { makeClientAddress } from "../base/net/client-address.js";
import { listenOn } from "../base/net/listen-on.js";
import { watchReplies } from "../base/net/open-replies.js";
import { type FormDeps, type FormOptions, makeFormApp } from "./app.js";
import { FormAudit } from "./record-answers.js";
import { addFormRoutes } from "./routes.js";

interface ListeningForm {
  readonly port: number;
  /** Stops accepting, lets replies in flight end within the limit, then cuts what is left. */
  close(): Promise<void>;
}

/**
 * Listens for browsers of people who have the link of a collection form: apart from the API, so that a page
 * of the one is of another origin than the other.
 */
export async function listenForForms(options: FormOptions, deps: FormDeps): Promise<ListeningForm> {
  const addressOf = makeClientAddress(options.trustedProxies);
  const trail = new FormAudit({ ...deps, addressOf });
  const app = makeFormApp(options, { ...deps, trail });
  addFormRoutes(app, options, { ...deps, addressOf, trail });
  await app.ready();
  const { server } = app;
  watchReplies(server);
  server.headersTimeout = options.requestTimeoutMs;
  server.maxConnections = options.maxConnections;
  await listenOn(server, { host: options.host, port: options.port, section: "vault.form" });
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      const closed = app.close();
      try {
        await within(deps.clock, { what: "replies in flight", limitMs: options.closeLimitMs }, closed);
      } catch (error) {
        if (!(error instanceof TimeLimitReached)) throw error;
        server.closeAllConnections();
        await closed;
      }
    },
  };
}
