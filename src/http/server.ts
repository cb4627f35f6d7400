import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import type { Millis } from "../base/clock.js";
import { TimeLimitReached, within } from "../base/deadline.js";
import { makeClientAddress } from "../base/net/client-address.js";
import { listenOn } from "../base/net/listen-on.js";
import { type AppState, makeApp } from "./app.js";
import type { App } from "./bare-app.js";
import { AuditTrail } from "./audit.js";
import type { HttpDeps, HttpOptions } from "./deps.js";
import { isDocsPath } from "./docs/docs-path.js";
import { type Docs, makeDocs } from "./docs/docs.js";
import { makeServer } from "./sockets.js";

export interface ListeningApi {
  readonly port: number;
  /** Connections are closed after their next reply; requests are still taken. */
  drain(): void;
  /** Stops accepting, lets replies in flight end within the limit, then cuts what is left. */
  close(): Promise<void>;
}

/** Answers that are read for long are looked for so often. */
const longAnswersMs: Millis = 300_000;

export async function listen(options: HttpOptions, deps: HttpDeps): Promise<ListeningApi> {
  const state: AppState = { draining: false, closing: false };
  const upgraded = new Set<Duplex>();
  const docs = makeDocs(options, deps, state);
  const addressOf = makeClientAddress(options.trustedProxies);
  const trail = deps.audit && new AuditTrail(deps.audit, deps.clock, addressOf);
  const app = makeApp(options, deps, {
    state,
    prepare: (made) => trail?.watch(made),
    serverFactory: (api) =>
      makeServer({ options, deps, state, trail, upgraded, isDocsPath, docs: docs.request }, api),
  });
  await app.ready();
  // Does not listen through Fastify, which would listen a second time where a name has two addresses.
  await listenOn(app.server, { host: options.host, port: options.port });
  const { port } = app.server.address() as AddressInfo;
  const stopLooking = deps.clock.every(longAnswersMs, () => trail?.recordLong());
  return {
    port,
    drain() {
      state.draining = true;
      app.server.closeIdleConnections();
    },
    close: () => close({ app, docs, upgraded, state, stopLooking }, { options, deps }),
  };
}

interface ServerParts {
  readonly app: App;
  readonly docs: Docs;
  readonly upgraded: ReadonlySet<Duplex>;
  readonly state: AppState;
  stopLooking(): void;
}

async function close(
  { app, docs, upgraded, state, stopLooking }: ServerParts,
  { options, deps }: { options: HttpOptions; deps: HttpDeps },
): Promise<void> {
  state.draining = true;
  state.closing = true;
  const { server } = app;
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  // A connection becomes idle when its last reply has ended, and Node.js closes only those that are idle at
  // this moment.
  const stopSweeping = deps.clock.every(50, () => server.closeIdleConnections());
  try {
    await within(deps.clock, { what: "replies in flight", limitMs: options.closeLimitMs }, closed);
  } catch (error) {
    if (!(error instanceof TimeLimitReached)) throw error;
    deps.log.warn({ limitMs: options.closeLimitMs }, "replies in flight were cut");
    server.closeAllConnections();
    for (const socket of upgraded) socket.destroy();
    await closed;
  } finally {
    stopSweeping();
    stopLooking();
    await docs.close();
    await app.close();
  }
}
