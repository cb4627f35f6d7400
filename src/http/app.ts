import type { TypeBoxTypeProvider } from "@fastify/type-provider-typebox";
import type { FastifyReply, FastifyRequest, FastifyServerFactory } from "fastify";
import type { NamedKind } from "../access/first-removals.js";
import { refusal } from "../base/errors.js";
import { textOf } from "../base/log.js";
import { type HostCheck, makeHostCheck } from "../base/net/host-check.js";
import { makeClientAddress } from "../base/net/client-address.js";
import { securityHeaders } from "../base/net/security-headers.js";
import { bounds } from "../spec/bodies.js";
import type { CapturingLease } from "../spec/caller.js";
import { makeInProject, principalOf, retryCountOf } from "./admission/caller.js";
import type { HttpDeps, HttpOptions } from "./deps.js";
import { addAdmission } from "./admission/admission.js";
import { addAuthorization } from "./admission/authorization.js";
import { type App, fail, makeBare } from "./bare-app.js";
import { acceptBodies } from "./body.js";
import { sendRefusal } from "./errors.js";
import { makeNoteFailedLogin } from "./admission/rates.js";
import { pathOf } from "./request-path.js";
import { addApiKeys } from "./routes/api-keys.js";
import { addAuth, addHealth, addMetrics } from "./routes/daemon.js";
import { addAudit } from "./routes/audit.js";
import { addDestinations } from "./routes/destinations.js";
import { addExtensions } from "./routes/extensions.js";
import { addLimits } from "./routes/limits.js";
import { addNodes, addScaling } from "./routes/nodes.js";
import { addPools } from "./routes/pools.js";
import { addProfiles } from "./routes/profiles.js";
import { addProjects } from "./routes/projects.js";
import { addProxies } from "./routes/proxies.js";
import { addSessionExtensions } from "./routes/session-extensions.js";
import { addSessions } from "./routes/sessions.js";
import { addTelemetry } from "./routes/telemetry.js";
import { addTelemetryDestinations } from "./routes/telemetry-destinations.js";
import { addVaultItems } from "./routes/vault-items.js";
import { addVaults } from "./routes/vaults.js";
import { components } from "./schemas/replies.js";
import { makeValidatorCompiler } from "./validation.js";

declare module "fastify" {
  interface FastifyContextConfig {
    /** What a route deletes whose path may name it. */
    readonly removes?: NamedKind;
  }
  interface FastifyRequest {
    /** Tells whose browser the request manages of it, once it is answered; an operation says who that is. */
    tellAnswered(reply: FastifyReply, lease: CapturingLease | Promise<CapturingLease>): void;
  }
}

export interface AppState {
  /** Connections are not kept; clients are to come back elsewhere. */
  draining: boolean;
  /** No connection is taken any more; a request that comes on one there is gets its answer. */
  closing: boolean;
}

interface Assembly {
  readonly state: AppState;
  readonly serverFactory?: FastifyServerFactory;
  /** What has to be there before the routes are. */
  readonly prepare?: (app: App) => void;
}

/** Builds all routes, replies and refusals; nothing listens yet. */
export function makeApp(options: HttpOptions, deps: HttpDeps, more: Assembly): App {
  const app = makeBare(deps, more.serverFactory);
  app.setValidatorCompiler(makeValidatorCompiler());
  // The reply schemas describe; they do not filter, and JSON.stringify is as fast on objects of this size.
  app.setSerializerCompiler(() => JSON.stringify);
  app.setErrorHandler((error, request, reply) => fail(deps, error, { request, reply }));
  acceptBodies(app);
  app.decorateRequest("principal", undefined);
  app.decorateRequest("sees", undefined);
  app.decorateRequest("open", undefined);
  app.decorateRequest("deferred", undefined);
  for (const component of components) app.addSchema(component);
  const routes = collectRoutes(app);
  app.setNotFoundHandler((request, reply) => sendRefusal(reply, notFound(routes, request)));
  addFirstHooks(app, more.state);
  if (options.logsRequests) addRequestLog(app, deps);
  more.prepare?.(app);
  void app.register(async (scope) => addRoutes(scope.withTypeProvider<TypeBoxTypeProvider>(), options, deps));
  return app;
}

function addRoutes(app: App, options: HttpOptions, deps: HttpDeps): void {
  const context = { region: options.region, links: deps.links, drainsUntil: deps.drainsUntil };
  const noteFailedLogin = makeNoteFailedLogin(deps, makeClientAddress(options.trustedProxies));
  addHealth(app, deps);
  addMetrics(app, { ...deps, noteFailedLogin, isOpen: hostCheckOf(options).isLocal });
  void app.register(async (scope) => {
    const admitted = scope.withTypeProvider<TypeBoxTypeProvider>();
    addAdmission(admitted, deps, noteFailedLogin);
    addFirstRemovals(admitted, deps);
    addAuthorization(admitted, deps);
    tellPlatformCalls(admitted, deps);
    const given = { ...deps, context, inProject: makeInProject(deps) };
    addPools(admitted, { ...given, policyBodyBytes: options.bodyLimitBytes });
    addSessions(admitted, { ...given, policyBodyBytes: options.bodyLimitBytes });
    addSessionExtensions(admitted, { ...given, uploads: options.uploads });
    addProxies(admitted, given);
    addExtensions(admitted, { ...given, uploads: options.uploads });
    addProfiles(admitted, given);
    addTelemetry(admitted, given);
    addTelemetryDestinations(admitted, given);
    addVaults(admitted, given);
    addVaultItems(admitted, given);
    addApiKeys(admitted, deps);
    addLimits(admitted, deps);
    addScaling(admitted, deps);
    addNodes(admitted, deps);
    addAudit(admitted, deps);
    addDestinations(admitted, deps);
    addAuth(admitted);
    addProjects(admitted, deps);
  });
}

function addFirstHooks(app: App, state: AppState): void {
  app.addHook("onRequest", (request, reply, next) => {
    reply.headers(securityHeaders).header("x-request-id", request.id);
    next();
  });
  // Asked at the answer: an acquire may have waited since before the drain, and its caller would come back.
  // oxlint-disable-next-line max-params -- Fastify's own signature
  app.addHook("onSend", (_request, reply, _payload, next) => {
    if (state.draining) reply.header("connection", "close");
    next();
  });
}

/** The path without its query, which may hold what is not to be logged. */
function addRequestLog(app: App, { log }: HttpDeps): void {
  app.addHook("onResponse", (request, reply, next) => {
    const { method, id } = request;
    log.debug(
      { method, path: pathOf(request.url), status: reply.statusCode, request: id, tookMs: reply.elapsedTime },
      "request answered",
    );
    next();
  });
}

/** Projects have names of their own form, which stand in no key by themselves. */
const namePattern = new RegExp(bounds.namePattern);
const mayBeNamed = (kind: NamedKind, ref: string): boolean => kind === "projects" || namePattern.test(ref);

/**
 * Puts the id of what a deletion means in the place of its name. Stands before what is judged by policies, so
 * that they speak of the same thing.
 */
function addFirstRemovals(app: App, { findRemoved }: Pick<HttpDeps, "findRemoved">): void {
  app.addHook("preHandler", (request, _reply, next) => {
    const { removes: kind } = request.routeOptions.config;
    if (kind === undefined) return next();
    const params = request.params as Record<string, string>;
    const [place = ""] = Object.keys(params);
    const ref = params[place];
    if (ref === undefined || !mayBeNamed(kind, ref)) return next();
    const isRepeat = retryCountOf(request.headers["x-stainless-retry-count"]) > 0;
    const settle = (id: string): void => {
      params[place] = id;
      next();
    };
    findRemoved({ kind, ref, principal: principalOf(request), isRepeat }).then(settle, next);
  });
}

/**
 * Tells holders of the calls that manage their browsers, once these are answered (docs/telemetry.md#events).
 * No hook, which every acquire and release would pay for.
 */
function tellPlatformCalls(
  app: App,
  { tellPlatformCall, log }: Pick<HttpDeps, "tellPlatformCall" | "log">,
): void {
  app.decorateRequest("tellAnswered", function tellAnswered(this: FastifyRequest, reply, lease) {
    const { id: requestId, routeOptions } = this;
    const { operationId = "" } = routeOptions.schema ?? {};
    const tell = async (answered: { status: number; durationMs: number }): Promise<void> =>
      tellPlatformCall(await lease, { requestId, operationId, ...answered });
    reply.raw.once("finish", () => {
      const answered = { status: reply.statusCode, durationMs: reply.elapsedTime };
      tell(answered).catch((error: unknown) =>
        log.warn({ request: requestId, error: textOf(error) }, "call not told among the events"),
      );
    });
  });
}

interface KnownRoute {
  readonly methods: readonly string[];
  readonly path: RegExp;
}

function collectRoutes(app: App): readonly KnownRoute[] {
  const routes: KnownRoute[] = [];
  app.addHook("onRoute", ({ method, url }) => {
    routes.push({
      methods: [method].flat(),
      path: new RegExp(`^${url.replaceAll(/:[^/]+/g, "[^/]+").replaceAll("*", ".*")}$`),
    });
  });
  return routes;
}

function notFound(routes: readonly KnownRoute[], { url, method }: FastifyRequest) {
  const methods = routes.filter((route) => route.path.test(pathOf(url))).flatMap((route) => route.methods);
  // A route may take the method and still find nothing, as that of the page's own files.
  if (methods.length === 0 || methods.includes(method)) return refusal("route_not_found");
  return refusal("method_not_allowed", {
    message: `This path takes ${[...new Set(methods)].sort().join(", ")}`,
  });
}

/** Knows by which names the daemon is reached. */
export const hostCheckOf = ({ host, publicUrl, nodeUrl }: HttpOptions): HostCheck =>
  makeHostCheck({ host, urls: [publicUrl, nodeUrl] });
