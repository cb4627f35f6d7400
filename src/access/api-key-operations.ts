import type { Millis } from "../base/clock.js";
import { keyDigestOf, makeKeyText, maskOf, newKeySalt } from "../base/crypto/key-text.js";
import { requestDigests } from "../base/crypto/request-digests.js";
import type { Secret } from "../base/crypto/secret.js";
import { type Done, done, type Refusal, refusal } from "../base/errors.js";
import { type ApiKeyId, findApiKeyId, newApiKeyId, type ProjectId } from "../base/ids.js";
import type { Caller } from "../spec/caller.js";
import type { Page } from "../spec/paging.js";
import {
  type ApiKey,
  type ApiKeyCreate,
  type ApiKeyOperations,
  type ApiKeyStore,
  type IssueResult,
  keyBounds,
  type KnownProjects,
  type NewApiKey,
  type Repeatable,
  type ShownKey,
} from "./api-key.js";
import { isKeySearch, listKeys, mostSearched, SearchTurns } from "./list-keys.js";
import { nameIn } from "./name.js";
import { policyFaults, type PolicyTargets } from "./policy.js";
import { keyOf, type Principal, principalKey } from "./principal.js";

interface ApiKeyPorts {
  readonly store: ApiKeyStore;
  readonly projects: KnownProjects;
  /** What policies may name. */
  readonly targets: PolicyTargets;
  /** What keys are made of, beside a salt. */
  readonly secret: Secret;
}

export const makeApiKeyOperations = (ports: ApiKeyPorts): ApiKeyOperations => ({
  create: makeCreate(ports),
  list: makeList(ports),
  get: makeGet(ports),
  rename: makeRename(ports),
  remove: makeRemove(ports),
  rotate: makeRotate(ports),
});

const notFound = refusal("not_found", { message: "There is no such API key" });
const tooFar = refusal("bad_request", {
  details: [
    {
      code: "invalid_input",
      message: `offset: must be at most ${mostSearched} where keys are searched or sorted; narrow the search`,
    },
  ],
});
const tooMany = (most: number): Refusal =>
  refusal("limit_exceeded", {
    message: "The organization has as many API keys as it may have",
    reached: { of: "organization", most },
  });

/**
 * Whoever manages keys reaches those of its own scope, and gives no wider one. Who may is told by the table.
 */
const isInScope = ({ projectId }: Pick<ApiKey, "projectId">, { credentialScope }: Principal): boolean =>
  credentialScope === null || credentialScope === projectId;

/** A key that the caller may know of; of a deleted one only where it is asked for. */
async function findKey(
  { store }: ApiKeyPorts,
  ref: string,
  { principal, withDeleted = false }: { principal: Principal; withDeleted?: boolean },
): Promise<Done<ApiKey> | Refusal> {
  const id = findApiKeyId(ref);
  const key = id && (await store.find(id));
  if (!key || !isInScope(key, principal)) return notFound;
  return key.deletedAt !== undefined && !withDeleted ? notFound : done(key);
}

const shown = async ({ projects }: ApiKeyPorts, key: ApiKey): Promise<ShownKey> => ({
  key,
  projectName: key.projectId === undefined ? null : ((await projects.nameOf(key.projectId)) ?? null),
});

const makeCreate =
  (ports: ApiKeyPorts): ApiKeyOperations["create"] =>
  async (body, caller) => {
    const { principal } = caller;
    const name = nameIn(body.name);
    if (name.kind === "refused") return name;
    const how = repeatable(caller, "create an API key", body);
    const project = await scopeFor(ports, body, principal);
    if (project.kind === "refused") return await unlessGiven(ports, how, project);
    const key = {
      ...draw(ports, how.salt, principal),
      name: name.value,
      ...(project.value && { projectId: project.value }),
      ...(body.policy && { policy: body.policy }),
      ...(body.days_to_expire && { lifetimeDays: body.days_to_expire }),
    };
    return await issued(ports, await ports.store.create(key, how), how.salt);
  };

/** The project of a new key, whose policy lies within it. */
async function scopeFor(
  ports: ApiKeyPorts,
  { project_id: asked, policy }: ApiKeyCreate,
  principal: Principal,
): ReturnType<typeof projectFor> {
  const project = await projectFor(ports, asked, principal);
  if (project.kind === "refused" || !policy) return project;
  const faults = await policyFaults(policy, project.value ?? null, ports.targets);
  return faults.length > 0 ? refusal("bad_request", { details: faults }) : project;
}

/** The project of a new key: that of the caller where it has only one. */
async function projectFor(
  { projects }: ApiKeyPorts,
  asked: string | null | undefined,
  { credentialScope }: Principal,
): Promise<Done<ProjectId | undefined> | Refusal> {
  if (asked === undefined) return done(credentialScope ?? undefined);
  if (asked === null)
    return credentialScope === null
      ? done(undefined)
      : refusal("insufficient_scope", { message: "A key of one project makes no key of the organization" });
  const isKnown = credentialScope === null || credentialScope === asked;
  if (!isKnown || (await projects.nameOf(asked)) === undefined) return refusal("project_not_found");
  return done(asked as ProjectId);
}

const makeRotate =
  (ports: ApiKeyPorts): ApiKeyOperations["rotate"] =>
  async (ref, body, caller) => {
    const id = findApiKeyId(ref);
    if (!id) return notFound;
    const how = repeatable(caller, `rotate API key ${id}`, body);
    const found = await findKey(ports, id, caller);
    if (found.kind === "refused") return await unlessGiven(ports, how, found);
    const isOwnEnd = caller.principal.credentialId === id && body.expire_in_days === 0;
    if (isOwnEnd && caller.idempotencyKey !== undefined) return unrepeatable;
    const key = {
      ...draw(ports, how.salt, caller.principal),
      ...(body.days_to_expire && { lifetimeDays: body.days_to_expire }),
    };
    const graceMs = (body.expire_in_days ?? keyBounds.graceDays) * dayMs;
    const got = await ports.store.rotate({ id, graceMs }, key, how);
    if (got.kind === "missing") return notFound;
    return got.kind === "short" ? tooShort : await issued(ports, got, how.salt);
  };
const invalidGrace = (why: string): Refusal =>
  refusal("bad_request", { details: [{ code: "invalid_input", message: `expire_in_days: ${why}` }] });
const tooShort = invalidGrace("must not be more than the days until the new key expires");
const unrepeatable = invalidGrace(
  "must be at least 1 where a key rotates itself with an Idempotency-Key, since a repeat by a key that has ended is not let in",
);
const dayMs: Millis = 24 * 60 * 60 * 1000;

/** A key that nobody has yet; its text is in what it is made of, and is kept nowhere. */
function draw(ports: ApiKeyPorts, salt: string, { person }: Principal): NewApiKey {
  const text = makeKeyText(ports.secret, salt).reveal();
  return { id: newApiKeyId(), digest: keyDigestOf(text), mask: maskOf(text), createdBy: person };
}

/**
 * A repeat is known by caller and project, so that nobody is answered what another was given, nor a person
 * what they were given under a token of another project.
 */
function repeatable(
  { idempotencyKey: sent, principal }: Caller,
  operation: string,
  body: unknown,
): Repeatable {
  const reach = principal.credentialScope ?? "every project";
  const idempotencyKey = requestDigests(sent, `${operation} as ${principalKey(principal)} of ${reach}`, body);
  const maker = keyOf(principal);
  return {
    salt: newKeySalt(),
    ...(idempotencyKey && { idempotencyKey }),
    ...(maker !== undefined && { maker }),
  };
}

/**
 * What a first request is refused for now is no matter to its repeat: the text of its key is told nowhere
 * else. Asked where there is a refusal, so that other requests pay nothing for it.
 */
async function unlessGiven(ports: ApiKeyPorts, how: Repeatable, refused: Refusal): Promise<Issued> {
  const given = await ports.store.given(how);
  return given ? await issued(ports, given, how.salt) : refused;
}

type Issued = Awaited<ReturnType<ApiKeyOperations["create"]>>;
async function issued(ports: ApiKeyPorts, got: IssueResult, drawn: string): Promise<Issued> {
  if (got.kind === "many") return tooMany(got.most);
  if (got.kind === "ended") return refusal("unauthorized");
  if (got.kind === "mismatch") return refusal("idempotency_mismatch");
  const text = makeKeyText(ports.secret, got.kind === "same" ? got.salt : drawn);
  return done({ ...(await shown(ports, got.key)), text });
}

function makeList(ports: ApiKeyPorts): ApiKeyOperations["list"] {
  const turns = new SearchTurns();
  return async (query, principal, gone) => {
    const isSearch = isKeySearch(query);
    if (isSearch && query.offset > mostSearched) return tooFar;
    const list = (): Promise<Page<ApiKey>> => listKeys({ ...ports, gone }, query, principal);
    const page = isSearch ? await turns.take(principalKey(principal), list) : await list();
    return done({ ...page, items: await Promise.all(page.items.map((key) => shown(ports, key))) });
  };
}

const makeGet =
  (ports: ApiKeyPorts): ApiKeyOperations["get"] =>
  async (ref, how) => {
    const found = await findKey(ports, ref, how);
    if (found.kind === "refused") return found;
    const lastUsedAt = await ports.store.lastUsed(found.value.id);
    return done({ ...(await shown(ports, found.value)), ...(lastUsedAt !== undefined && { lastUsedAt }) });
  };

const makeRename =
  (ports: ApiKeyPorts): ApiKeyOperations["rename"] =>
  async (ref, patch, principal) => {
    const found = await findKey(ports, ref, { principal });
    if (found.kind === "refused") return found;
    const name = nameIn(patch.name);
    if (name.kind === "refused") return name;
    const key = await ports.store.rename(found.value.id, name.value);
    return key ? done(await shown(ports, key)) : notFound;
  };

const makeRemove =
  (ports: ApiKeyPorts): ApiKeyOperations["remove"] =>
  async (ref, { principal, request }) => {
    const found = await findKey(ports, ref, { principal, withDeleted: true });
    if (found.kind === "refused") return found;
    const id: ApiKeyId = found.value.id;
    if (principal.credentialId === id) return refusal("cannot_delete_current_key");
    return (await ports.store.remove(id, request)) === "missing" ? notFound : done(null);
  };
