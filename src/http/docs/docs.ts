import type { FastifySwaggerUiOptions } from "@fastify/swagger-ui";
import type { IncomingMessage, ServerResponse } from "node:http";
import { atFirstUse } from "../../base/at-first-use.js";
import { refusal } from "../../base/errors.js";
import { type AppState, makeApp } from "../app.js";
import type { App } from "../bare-app.js";
import type { HttpDeps, HttpOptions } from "../deps.js";
import { describeApi } from "./openapi.js";
import { refuseOnSocket } from "../raw-reply.js";

/** Everything of the page comes from here; the library's own policy would allow other hosts. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** The mark is a horseshoe. */
const mark = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><path fill="none" stroke="#b5651d" stroke-width="6" d="M8 28C2 12 8 4 16 4s14 8 8 24"/></svg>`;
const logo = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 150 32" height="40"><g transform="scale(0.9)">${mark.replace(/^<svg[^>]*>|<\/svg>$/g, "")}</g>
<text x="38" y="23" font-family="sans-serif" font-size="20" font-weight="bold" fill="#fff">Remuda</text></svg>`;

const docsPage: FastifySwaggerUiOptions = {
  routePrefix: "/docs",
  uiConfig: { deepLinking: true, docExpansion: "list", persistAuthorization: false },
  staticCSP: contentSecurityPolicy,
  theme: {
    title: "Remuda API",
    favicon: [{ filename: "remuda.svg", rel: "icon", type: "image/svg+xml", sizes: "any", content: mark }],
  },
  logo: { type: "image/svg+xml", content: logo, href: "/docs", target: "_self" },
};

export interface Docs {
  request(request: IncomingMessage, response: ServerResponse): void;
  close(): Promise<void>;
}

/**
 * The OpenAPI document and a page to browse it: the same routes on an app of their own, made at the first
 * visit, so that neither the start nor any other request pays for it.
 */
export function makeDocs(options: HttpOptions, deps: HttpDeps, state: AppState): Docs {
  let opened: Promise<App> | undefined;
  const fail = (request: IncomingMessage, error: unknown): void => {
    opened = undefined;
    deps.log.error({ error }, "API documentation could not be made");
    refuseOnSocket(request.socket, refusal("internal"), request);
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

const packages = atFirstUse((require) => ({
  swagger: require("@fastify/swagger") as typeof import("@fastify/swagger"),
  page: require("@fastify/swagger-ui") as typeof import("@fastify/swagger-ui"),
}));

async function openDocs(options: HttpOptions, deps: HttpDeps, state: AppState): Promise<App> {
  const { swagger, page } = packages();
  // Registered ahead of the routes: the generator sees only those that come after it.
  const prepare = (app: App): void => {
    void app.register(swagger.default, describeApi(options));
    void app.register(page.default, docsPage);
    app.get("/openapi.json", { schema: { hide: true } }, async () => app.swagger());
  };
  const app = makeApp(options, deps, { state, prepare });
  await app.ready();
  return app;
}
