import type { FastifyReply, FastifyRequest, onSendHookHandler, preHandlerHookHandler } from "fastify";
import type { Admitted, DeferredAdmission } from "../../access/principal.js";
import { type Refusal, refusal } from "../../base/errors.js";
import { refuseClosed } from "./authorization.js";
import { addPreHandler, type App } from "../bare-app.js";
import type { HttpDeps } from "../deps.js";
import { refusalOfError, sendRefusal, showRefusal } from "../errors.js";
import { type OpenRequest, OpenRequests } from "./open-requests.js";
import { retryCountOf } from "./caller.js";
import { type NoteFailedLogin, tellRate } from "./rates.js";

declare module "fastify" {
  interface FastifyContextConfig {
    /** Its answer is whole before it is cut, although it may itself have ended the key that it came with. */
    readonly mayEndItsKey?: true;
    /** It closes a project that its path names. */
    readonly mayCloseProjects?: true;
    /** The first script of its operation may judge the key (access/principal.ts). */
    readonly mayDefer?: true;
  }
  interface FastifyRequest {
    /** Undefined where its credential never ends. */
    open: OpenRequest | undefined;
    /** Undefined where it was judged before its route was asked. */
    deferred: DeferredAdmission | undefined;
  }
}

/**
 * Whatever stands behind this knows who the request is from. What is answered at once is not waited for: the
 * root key costs no turn of the event loop.
 */
export function addAdmission(app: App, deps: HttpDeps, noteFailedLogin: NoteFailedLogin): void {
  const open = new OpenRequests(deps);
  app.addHook("onClose", () => open.close());
  app.addHook("onRequest", (request, reply, next) => {
    const askedAt = deps.clock.monotonic();
    const settle = (got: Admitted, deferred?: DeferredAdmission): void => {
      const refused = refusedBy(got, { request, reply, noteFailedLogin }) ?? refuseClosed(request);
      if (refused) return void sendRefusal(reply, refused);
      if (got.principal) request.open = open.add(got.principal, reply.raw, { askedAt, deferred });
      next();
    };
    const { mayDefer } = request.routeOptions.config;
    const shown = { authorization: request.headers.authorization, project: projectNamedBy(request) };
    request.deferred = mayDefer && deps.authenticator.defer(shown);
    const { deferred } = request;
    if (deferred) return settle({ kind: "admitted", principal: deferred.principal }, deferred);
    const got = deps.authenticator.admit(shown);
    if (got instanceof Promise) got.then((late) => settle(late), next);
    else settle(got);
  });
  addLateJudgements(app);
  addDeferred(app, noteFailedLogin);
  const forget: preHandlerHookHandler = (...[, { raw }, next]) => {
    open.forget(raw);
    next();
  };
  app.addHook("onRoute", (route) => {
    if (route.config?.mayEndItsKey) addPreHandler(route, forget);
  });
}

/**
 * Undefined also for the repeat of a request that may have closed the project which it names, into which
 * nobody is let any more. What is to be closed is named by the path.
 */
function projectNamedBy({ headers, routeOptions: { config } }: FastifyRequest): string | undefined {
  const isRepeat = config.mayCloseProjects && retryCountOf(headers["x-stainless-retry-count"]) > 0;
  return isRepeat ? undefined : headers["x-kernel-project-id"]?.toString();
}

/** Judges once more what was let in by its head, and whose body came late. */
function addLateJudgements(app: App): void {
  app.addHook("preValidation", ({ open: opened, routeOptions: { config } }, reply, next) => {
    // An upload is read by its route, which asks when all of it is there.
    const judged = config.takesMultipart ? undefined : opened?.hasEnded();
    if (judged === undefined) return next();
    const settle = (hasEnded: boolean): void =>
      hasEnded ? void sendRefusal(reply, refusal("unauthorized")) : next();
    judged.then(settle, next);
  });
}

interface Judging {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly noteFailedLogin: NoteFailedLogin;
}

/** Tells the request who it is from, and its reply what is left of a rate; gives why it is not let in. */
function refusedBy(got: Admitted, { request, reply, noteFailedLogin }: Judging): Refusal | undefined {
  request.principal = got.principal;
  if (got.rate) tellRate(reply, got.rate);
  return got.kind === "admitted" ? undefined : (noteFailedLogin(request, got) ?? got);
}

/**
 * Judges the key before the answer where no script has done so, as when the body is not valid: whoever is not
 * let in learns nothing of what came of the request.
 */
function addDeferred(app: App, noteFailedLogin: NoteFailedLogin): void {
  const judge: onSendHookHandler = (...[request, reply, payload, next]) => {
    const { deferred } = request;
    if (!deferred) return next(null, payload);
    const settle = (refused: Refusal | undefined): void =>
      next(null, refused ? showRefusal(reply, refused) : payload);
    const judged = (got: Admitted): void => settle(refusedBy(got, { request, reply, noteFailedLogin }));
    const known = deferred.outcome();
    if (known) return judged(known);
    deferred.judge().then(judged, (error: unknown) => settle(refusalOfError(error)));
  };
  app.addHook("onRoute", (route) => {
    if (route.config?.mayDefer) route.onSend = [...[route.onSend ?? []].flat(), judge];
  });
}
