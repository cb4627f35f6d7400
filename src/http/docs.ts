import type { IncomingMessage, ServerResponse } from "node:http";
import { refusal } from "../base/errors.js";
import { type App, type AppState, makeApp } from "./app.js";
import type { HttpDeps, HttpOptions } from "./deps.js";
import { describeApi } from "./openapi.js";
import { refuseOnSocket } from "./raw-reply.js";
import { requestIdOf } from "./request-id.js";

export const isDocsPath = (url: string): boolean => /^\/(?:openapi\.json|docs(?:\/[^?]*)?)(?:\?|$)/.test(url);

export interface Docs {
  request(request: IncomingMessage, response: ServerResponse): void;
  close(): Promise<void>;
}

/**
 * The OpenAPI document and a page to browse it: the same routes on an app of their own, made at the first visit, so that
 * neither the start nor any other request pays for it.
 */
export function makeDocs(options: HttpOptions, deps: HttpDeps, state: AppState): Docs {
  let opened: Promise<App> | undefined;
  const fail = (request: IncomingMessage, error: unknown): void => {
    opened = undefined;
    deps.log.error({ error }, "API documentation could not be made");
    refuseOnSocket(request.socket, refusal("internal"), requestIdOf(request));
  };
  return {
    request(request, response) {
      opened ??= openDocs(options, deps, state);
      opened.then((app) => app.routing(request, response)).catch((error: unknown) => fail(request, error));
    },
    async close() {
      const app = await opened?.catch(() => undefined);
      await app?.close();
    },
  };
}

async function openDocs(options: HttpOptions, deps: HttpDeps, state: AppState): Promise<App> {
  const [swagger, page] = await Promise.all([import("@fastify/swagger"), import("@fastify/swagger-ui")]);
  // Registered ahead of the routes: the generator sees only those that come after it.
  const prepare = (app: App): void => {
    void app.register(swagger.default, describeApi(options));
    void app.register(page.default, { routePrefix: "/docs", uiConfig: { deepLinking: true, docExpansion: "list" } });
    app.get("/openapi.json", { schema: { hide: true } }, async () => app.swagger());
  };
  const app = makeApp(options, deps, { state, prepare });
  await app.ready();
  return app;
}
