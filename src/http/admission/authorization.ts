import type { FastifyRequest } from "fastify";
import {
  authorize,
  closedTo,
  type GuardedLookup,
  isClosedTo,
  lackingInProject,
} from "../../access/authorize.js";
import { type OperationRule, ruleOf } from "../../access/operation-rules.js";
import { type Guarded, type Principal, projectOfRequest } from "../../access/principal.js";
import type { Refusal } from "../../base/errors.js";
import type { App } from "../bare-app.js";
import type { HttpDeps } from "../deps.js";
import { callerOf } from "./caller.js";
import { sendRefusal, sendRemoved } from "../errors.js";

declare module "fastify" {
  interface FastifyRequest {
    /** Which things a list may show; undefined: all of them. */
    sees: ((thing: Guarded) => boolean) | undefined;
  }
  interface FastifyContextConfig {
    /** Set on routes that stand for no operation and answer everybody the same. */
    isForEverybody?: true;
  }
}

type Restricted = Principal & Required<Pick<Principal, "policy">>;
const isRestricted = (principal: Principal | undefined): principal is Restricted =>
  principal?.policy !== undefined;

const everybody: OperationRule = { of: "everybody" };
const ruleFor = (
  schema: { readonly operationId?: string } | undefined,
  isForEverybody = false,
): OperationRule => (isForEverybody ? everybody : ruleOf(schema?.operationId));

/** What is refused before anything of a request is read, whatever it says. */
export function refuseClosed({
  principal,
  routeOptions: { schema, config },
}: FastifyRequest): Refusal | undefined {
  if (principal === undefined) return undefined;
  const rule = ruleFor(schema, config.isForEverybody);
  return isClosedTo(principal, rule) ? closedTo(principal, rule) : undefined;
}

/** Whether the policy does not allow the operation in this project, whatever the request says. */
export const lacksPermission = ({ principal, routeOptions: { schema, config } }: FastifyRequest): boolean =>
  principal !== undefined && lackingInProject(principal, ruleFor(schema, config.isForEverybody)).length > 0;

/**
 * Holds requests with a policy against it, once they are known to be valid. Throws at the start where a route
 * has no rule.
 */
export function addAuthorization(app: App, { thingsIn }: Pick<HttpDeps, "thingsIn">): void {
  app.addHook("onRoute", ({ schema, config }) => void ruleFor(schema, config?.isForEverybody));
  app.addHook("preHandler", (request, reply, next) => {
    const { principal } = request;
    if (!isRestricted(principal)) return next();
    const settle = (refused: Refusal | undefined): void => {
      if (!refused) return next();
      // A session's end says itself what a repeat finds.
      const isRemoval = request.method === "DELETE" && refused.code !== "browser_not_found";
      if (isRemoval) sendRemoved(reply, refused, callerOf(request, reply));
      else sendRefusal(reply, refused);
    };
    judge(thingsIn(projectOfRequest(principal)), request, principal).then(settle, next);
  });
}

/** Refuses, or puts what was judged in the place of what was named. */
async function judge(
  things: GuardedLookup,
  request: FastifyRequest,
  principal: Restricted,
): Promise<Refusal | undefined> {
  const { schema, config } = request.routeOptions;
  const rule = ruleFor(schema, config.isForEverybody);
  const params = request.params as Record<string, string>;
  const [place] = Object.keys(params);
  const ref = place === undefined ? undefined : params[place];
  const body = (request.body ?? undefined) as Parameters<typeof authorize>[1]["body"];
  const got = await authorize(things, { principal, rule, ref, body });
  if (got.kind === "refused") return got;
  const { id, body: resolved, sees } = got.value;
  if (place !== undefined && id !== undefined) params[place] = id;
  if (resolved !== undefined) request.body = resolved;
  request.sees = sees;
  return undefined;
}
