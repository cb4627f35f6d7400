import { type Done, done, type ErrorCode, type Refusal, refusal } from "../base/errors.js";
import { bounds, type Selector } from "../spec/bodies.js";
import { type AttachingBody, attachmentsOf, withIds } from "./attachments.js";
import type { OperationRule } from "./operation-rules.js";
import { type Action, allows, type Kind, knowsOf, type Policy } from "./policy.js";
import { type Guarded, type Principal, projectOfRequest } from "./principal.js";

/** What policies name in one project, found as requests name it. */
export interface GuardedThings {
  /** As a path names it: by its id, or where it has one its name. */
  find(kind: Kind, ref: string): Promise<Guarded | undefined>;
  /** As a body names it. */
  choose(kind: "profiles" | "proxies", selector: Selector): Promise<string | undefined>;
}

/** What a request with a policy asks for. */
interface Attempt {
  readonly principal: Principal & { readonly policy: Policy };
  readonly rule: OperationRule;
  /** What the path names. */
  readonly ref?: string | undefined;
  readonly body?: AttachingBody | undefined;
}

/**
 * What is let through: the id of what the path names, the body with ids for what it names, and what a list
 * may show. A name that came to stand for something else meanwhile gives nobody more.
 */
interface Passed {
  readonly id?: string;
  readonly body?: AttachingBody;
  readonly sees?: (thing: Guarded) => boolean;
}

const missing: Readonly<Record<Kind, ErrorCode>> = {
  browsers: "browser_not_found",
  profiles: "profile_not_found",
  proxies: "proxy_not_found",
  vaults: "not_found",
};

/** Whether a policy lets an operation do what it is asked for. */
export async function authorize(things: GuardedThings, attempt: Attempt): Promise<Done<Passed> | Refusal> {
  const { principal, rule, body } = attempt;
  if (rule.of === "everybody") return done({});
  if (rule.of === "unrestricted") return refusal("insufficient_scope");
  const may = mayOf(principal);
  if (rule.of === "list") return done({ sees: (thing) => may.all(rule.kind, rule.needs, thing) });
  const found = rule.of === "thing" ? await findThing(things, attempt, rule) : done({});
  if (found.kind === "refused") return found;
  if (rule.of === "project" && !rule.needs.every((action) => may.inProject(action)))
    return refusal("insufficient_scope");
  if (rule.attaches === undefined || body === undefined) return found;
  const attached = await attach(things, may, body);
  return attached.kind === "refused" ? attached : done({ ...found.value, body: attached.value });
}

/**
 * The thing that the path names. One of which no statement speaks is as unknown as one that is not there, so
 * that nobody finds out by asking.
 */
async function findThing(
  things: GuardedThings,
  { principal, ref = "" }: Attempt,
  { kind, needs }: { readonly kind: Kind; readonly needs: readonly Action[] },
): Promise<Done<Passed> | Refusal> {
  const found = isRef.test(ref) ? await things.find(kind, ref) : undefined;
  const { policy } = principal;
  if (!found || !knowsOf(policy, projectOfRequest(principal), { kind, id: found.id }))
    return refusal(missing[kind]);
  return mayOf(principal).all(kind, needs, found) ? done({ id: found.id }) : refusal("insufficient_scope");
}

/** What can be neither an id nor a name never becomes part of a question. */
const isRef = new RegExp(bounds.namePattern);

interface May {
  inProject(action: Action): boolean;
  on(action: Action, kind: Kind, id: string): boolean;
  /** All of the actions, and the use of what the thing holds. */
  all(kind: Kind, needs: readonly Action[], thing: Guarded): boolean;
}

function mayOf(principal: Attempt["principal"]): May {
  const { policy } = principal;
  const project = projectOfRequest(principal);
  const on: May["on"] = (action, kind, id) => allows(policy, action, { project, thing: { kind, id } });
  return {
    on,
    inProject: (action) => allows(policy, action, { project }),
    all: (kind, needs, { id, profile }) =>
      needs.every((action) => on(action, kind, id)) &&
      (profile === undefined ||
        (on("profiles:use", "profiles", profile.id) &&
          (!profile.save || on("profiles:write", "profiles", profile.id)))),
  };
}

/**
 * The body with an id for each thing that it names, where all of them may be used. What is not there is
 * refused as what may not be used, except to who may use all of its kind.
 */
async function attach(
  things: GuardedThings,
  may: May,
  body: AttachingBody,
): Promise<Done<AttachingBody> | Refusal> {
  const { isClosed, named } = attachmentsOf(body);
  if (isClosed)
    return refusal("insufficient_scope", {
      message: "A key with a policy launches no browser with extensions, vaults or an export of telemetry",
    });
  const ids = new Map<Selector, string>();
  for (const { kind, selector, needs } of named) {
    const id = await things.choose(kind, selector);
    const isAllowed = needs.every((action) => (id ? may.on(action, kind, id) : may.inProject(action)));
    if (!isAllowed)
      return refusal("insufficient_scope", {
        message: `This API key may not use what the body names of ${kind}`,
      });
    if (id !== undefined) ids.set(selector, id);
  }
  return done(withIds(body, ids));
}
