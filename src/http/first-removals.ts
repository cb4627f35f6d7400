import type { NamedKind } from "../access/first-removals.js";
import { bounds } from "../spec/bodies.js";
import type { App } from "./bare-app.js";
import { principalOf, retryCountOf } from "./admission/caller.js";
import type { HttpDeps } from "./deps.js";

declare module "fastify" {
  interface FastifyContextConfig {
    /** What a route deletes whose path may name it. */
    readonly removes?: NamedKind;
  }
}

/** Projects have names of their own form, which stand in no key by themselves. */
const namePattern = new RegExp(bounds.namePattern);
const mayBeNamed = (kind: NamedKind, ref: string): boolean => kind === "projects" || namePattern.test(ref);

/**
 * Puts the id of what a deletion means in the place of its name. Stands before what is judged by policies, so
 * that they speak of the same thing.
 */
export function addFirstRemovals(app: App, { findRemoved }: Pick<HttpDeps, "findRemoved">): void {
  app.addHook("preHandler", (request, _reply, next) => {
    const { removes: kind } = request.routeOptions.config;
    const params = request.params as Record<string, string>;
    const [place = ""] = Object.keys(params);
    const ref = params[place];
    if (kind === undefined || ref === undefined || !mayBeNamed(kind, ref)) return next();
    const isRepeat = retryCountOf(request.headers["x-stainless-retry-count"]) > 0;
    const settle = (id: string): void => {
      params[place] = id;
      next();
    };
    findRemoved({ kind, ref, principal: principalOf(request), isRepeat }).then(settle, next);
  });
}
