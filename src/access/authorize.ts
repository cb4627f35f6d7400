import { type Done, done, type ErrorCode, type Refusal, refusal } from "../base/errors.js";
import { bounds, type Selector } from "../spec/bodies.js";
import { type AttachingBody, attachmentsOf, needsOnProfile, withIds } from "./attachments.js";
import type { OperationRule } from "./operation-rules.js";
import { type Action, allows, type GuardedKind, knowsOf, type Policy } from "./policy.js";
import { type Guarded, type Principal, projectOfRequest } from "./principal.js";

/** What policies name in one project, found as requests name it. */
export interface GuardedLookup {
  /** As a path names it: by its id, or where it has one its name. */
  find(kind: GuardedKind, ref: string): Promise<Guarded | undefined>;
  /** As a body names it. */
  choose(kind: "profiles" | "proxies" | "vaults", selector: Selector): Promise<string | undefined>;
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

const missing: Readonly<Record<GuardedKind, ErrorCode>> = {
  browsers: "browser_not_found",
  profiles: "profile_not_found",
  proxies: "proxy_not_found",
  vaults: "vault_not_found",
};

/** What no policy opens is closed to whoever has one, and administration to members too. */
export const isClosedTo = ({ policy, isMember }: Principal, { of }: OperationRule): boolean =>
  (of === "unrestricted" && policy !== undefined) ||
  (of === "administration" && (policy !== undefined || isMember === true));

/** A person has a role in the place of a policy. */
export function closedTo({ type }: Principal, { of }: OperationRule): Refusal {
  const who = of === "administration" ? "an admin" : "a member or an admin";
  return refusal("insufficient_scope", {
    message: type === "user" ? `Only ${who} may do that` : "No API key with a policy may do that",
  });
}

const notAllowed = ({ type }: Principal, what: string): Refusal =>
  refusal("insufficient_scope", {
    message: `${type === "user" ? "Your role" : "The policy of this API key"} does not allow ${what}`,
  });

/** What an operation needs in the project as a whole and a policy does not allow there. */
export function lackingInProject(principal: Principal, rule: OperationRule): readonly Action[] {
  const { policy } = principal;
  if (policy === undefined || rule.of !== "project") return [];
  const project = projectOfRequest(principal);
  return rule.needs.filter((action) => !allows(policy, action, { project }));
}

/** Whether a policy lets an operation do what it is asked for. */
export async function authorize(things: GuardedLookup, attempt: Attempt): Promise<Done<Passed> | Refusal> {
  const { principal, rule, body } = attempt;
  if (rule.of === "everybody") return done({});
  if (rule.of === "unrestricted" || rule.of === "administration") return closedTo(principal, rule);
  if (rule.of === "list") {
    const may = policyCheckOf(principal);
    return done({ sees: (thing) => may.lacking(rule.kind, rule.needs, thing).length === 0 });
  }
  const found = rule.of === "thing" ? await findThing(things, attempt, rule) : done({});
  if (found.kind === "refused") return found;
  const driven = rule.of === "thing" && rule.drives ? await findDriven(things, attempt) : done({});
  if (driven.kind === "refused") return driven;
  const lacking = lackingInProject(principal, rule);
  if (lacking.length > 0) return notAllowed(principal, `${lacking.join(", ")} in this project`);
  if (rule.attaches === undefined || body === undefined) return found;
  const attached = await attach(things, attempt, body);
  return attached.kind === "refused" ? attached : done({ ...found.value, body: attached.value });
}

/**
 * The thing that the path names. One of which no statement speaks is as unknown as one that is not there, so
 * that nobody finds out by asking.
 */
async function findThing(
  things: GuardedLookup,
  { principal, ref = "" }: Attempt,
  { kind, needs }: { readonly kind: GuardedKind; readonly needs: readonly Action[] },
): Promise<Done<Passed> | Refusal> {
  const found = isRef.test(ref) ? await things.find(kind, ref) : undefined;
  const { policy } = principal;
  if (!found || !knowsOf(policy, projectOfRequest(principal), { kind, id: found.id }))
    return refusal(missing[kind]);
  const lacking = policyCheckOf(principal).lacking(kind, needs, found);
  return lacking.length === 0 ? done({ id: found.id }) : notAllowed(principal, `${lacking.join(", ")} here`);
}

/** The browser that a body names, in which something is to be done. */
async function findDriven(things: GuardedLookup, attempt: Attempt): Promise<Done<Passed> | Refusal> {
  const ref = attempt.body?.browser_id;
  if (ref === undefined) return done({});
  return await findThing(things, { ...attempt, ref }, { kind: "browsers", needs: ["browsers:use"] });
}

/** What can be neither an id nor a name never becomes part of a question. */
const isRef = new RegExp(bounds.namePattern);

interface PolicyCheck {
  inProject(action: Action): boolean;
  on(action: Action, kind: GuardedKind, id: string): boolean;
  /** What is not allowed of the actions, and of the use of what the thing holds. */
  lacking(kind: GuardedKind, needs: readonly Action[], thing: Guarded): readonly string[];
}

function policyCheckOf(principal: Attempt["principal"]): PolicyCheck {
  const { policy } = principal;
  const project = projectOfRequest(principal);
  const on: PolicyCheck["on"] = (action, kind, id) =>
    allows(policy, action, { project, thing: { kind, id } });
  return {
    on,
    inProject: (action) => allows(policy, action, { project }),
    lacking: (kind, needs, { id, profile, vaults = [] }) => [
      ...needs.filter((action) => !on(action, kind, id)),
      ...(profile === undefined ? [] : lackingOnProfile(on, profile)),
      ...(vaults.every((vault) => on("vaults:use", "vaults", vault)) ? [] : ["vaults:use on its vaults"]),
    ],
  };
}

const lackingOnProfile = (
  on: PolicyCheck["on"],
  { id, save }: NonNullable<Guarded["profile"]>,
): readonly string[] =>
  needsOnProfile(save)
    .filter((action) => !on(action, "profiles", id))
    .map((action) => `${action} on its profile`);

/**
 * The body with an id for each thing that it names, where all of them may be used. What is not there is
 * refused as what may not be used, except to who may use all of its kind.
 */
async function attach(
  things: GuardedLookup,
  { principal }: Attempt,
  body: AttachingBody,
): Promise<Done<AttachingBody> | Refusal> {
  const may = policyCheckOf(principal);
  const { isClosed, named } = attachmentsOf(body);
  if (isClosed) return notAllowed(principal, "extensions or an export of telemetry: no policy does");
  const ids = new Map<Selector, string>();
  for (const { kind, selector, needs } of named) {
    const id = await things.choose(kind, selector);
    const lacking = needs.filter((action) => !(id ? may.on(action, kind, id) : may.inProject(action)));
    if (lacking.length > 0)
      return notAllowed(principal, `${lacking.join(", ")} on what the body names as its ${called[kind]}`);
    if (id !== undefined) ids.set(selector, id);
  }
  return done(withIds(body, ids));
}
const called = { profiles: "profile", proxies: "proxy", vaults: "vault" } as const;
