import { type Static, Type } from "typebox";
import type { Millis } from "../base/clock.js";
import type { Secret } from "../base/crypto/secret.js";
import type { Done, Refusal } from "../base/errors.js";
import { ApiKeyId, type ProjectId, type RequestId } from "../base/ids.js";
import { parserOf } from "../base/parser.js";
import type { Caller } from "../spec/caller.js";
import type { Page, Paging } from "../spec/paging.js";
import { Policy, PolicyBody } from "./policy.js";
import type { Principal } from "./principal.js";
import type { Rate } from "./rate-limiter.js";

export const keyBounds = { nameLength: 255, days: 3650, graceDays: 7 } as const;

const closed = { additionalProperties: false } as const;
const Name = Type.String({ minLength: 1, maxLength: keyBounds.nameLength });
const lifetime = Type.Optional(
  Type.Union([Type.Integer({ minimum: 1, maximum: keyBounds.days }), Type.Null()], {
    description: "Days until it expires; null: never",
  }),
);
/** POST /org/api_keys (docs/access.md). */
export const ApiKeyCreate = Type.Object(
  {
    name: Name,
    days_to_expire: lifetime,
    policy: Type.Optional(PolicyBody),
    project_id: Type.Optional(
      Type.Union([Type.String({ minLength: 1, maxLength: 255 }), Type.Null()], {
        description: "The only project that the key reaches; null: every project",
      }),
    ),
  },
  closed,
);
export const ApiKeyPatch = Type.Object({ name: Name }, closed);
export const ApiKeyRotate = Type.Object(
  {
    days_to_expire: Type.Optional(
      Type.Union([Type.Integer({ minimum: 1, maximum: keyBounds.days }), Type.Null()], {
        description: "Days until the new key expires; null: as many as the rotated key had",
      }),
    ),
    expire_in_days: Type.Optional(
      Type.Union([Type.Integer({ minimum: 0, maximum: keyBounds.days }), Type.Null()], {
        description: `Days for which the rotated key still works; null: ${keyBounds.graceDays}`,
      }),
    ),
  },
  closed,
);
export type ApiKeyCreate = Static<typeof ApiKeyCreate>;
export type ApiKeyPatch = Static<typeof ApiKeyPatch>;
export type ApiKeyRotate = Static<typeof ApiKeyRotate>;

/** What is kept of an API key: everything but its text. Instants are Redis's. */
const ApiKey = Type.Object({
  id: ApiKeyId,
  name: Type.String(),
  digest: Type.String(),
  mask: Type.String(),
  createdAt: Type.Number(),
  createdBy: Type.Object({
    id: Type.String(),
    email: Type.String(),
    name: Type.Union([Type.String(), Type.Null()]),
  }),
  /** The life it was made for, which a rotation gives its successor. */
  lifetimeDays: Type.Optional(Type.Number()),
  expiresAt: Type.Optional(Type.Number()),
  deletedAt: Type.Optional(Type.Number()),
  projectId: Type.Optional(Type.Unsafe<ProjectId>(Type.String())),
  policy: Type.Optional(Policy),
  rotatedFrom: Type.Optional(Type.String()),
});
export type ApiKey = Readonly<Static<typeof ApiKey>>;
export const apiKeyParser = parserOf("the record of an API key", ApiKey);

/** A key as it is asked for; the store says when it was made and when it ends. */
export type NewApiKey = Pick<ApiKey, "id" | "digest" | "mask" | "createdBy" | "lifetimeDays">;

/** A request that may come again: digests of its idempotency key and body, and what the text is made of. */
export interface Repeatable {
  /** The API key that asks, which has to be good at the moment at which the other is made. */
  readonly maker?: string;
  readonly salt: string;
  readonly idempotencyKey?: { readonly key: string; readonly body: string };
}
/** `same`: the request came before, and was given the key of this salt. */
export type GivenKey =
  | { readonly kind: "same"; readonly key: ApiKey; readonly salt: string }
  | { readonly kind: "mismatch" };
/** `ended`: the key that asks for it has. */
export type IssueResult =
  | GivenKey
  | { readonly kind: "issued"; readonly key: ApiKey }
  | { readonly kind: "many"; readonly most: number }
  | { readonly kind: "ended" };

/** Keeps API keys, of all projects. */
export interface ApiKeyStore {
  /**
   * Who shows the key of this digest; one round trip, whose cost does not grow with the number of keys.
   * `elsewhere`: the project that is named, else the key's own, is none that is active. `limited`: nothing of
   * the key's rate was left; a request that is not counted has none.
   */
  admit(
    digest: string,
    project?: ProjectId,
    isUncounted?: boolean,
  ): Promise<
    { kind: "admitted" | "expired" | "limited" | "elsewhere"; key: ApiKey; rate?: Rate } | { kind: "unknown" }
  >;
  /**
   * The key of this digest as it was when it came last here. It may have ended since: a script has to judge
   * it before anything is done. Undefined where none can, or where a note of its use is due.
   */
  recall(digest: string): ApiKey | undefined;
  create(
    key: NewApiKey & Pick<ApiKey, "name" | "projectId" | "policy">,
    how: Repeatable,
  ): Promise<IssueResult>;
  rotate(
    old: { readonly id: ApiKeyId; readonly graceMs: Millis },
    key: NewApiKey,
    how: Repeatable,
  ): Promise<IssueResult | { readonly kind: "missing" } | { readonly kind: "short" }>;
  /** What the first of these requests was given; undefined where this one is no repeat. */
  given(how: Repeatable): Promise<GivenKey | undefined>;
  rename(id: ApiKeyId, name: string): Promise<ApiKey | undefined>;
  remove(id: ApiKeyId, request: RequestId): Promise<"deleted" | "missing">;
  /** Deleted keys too. */
  find(id: ApiKeyId): Promise<ApiKey | undefined>;
  /** Which of these keys let nobody in any more. */
  endedAmong(ids: readonly string[]): Promise<readonly string[]>;
  /** When it was let in last, to about a minute. */
  lastUsed(id: ApiKeyId): Promise<Millis | undefined>;
  /** The living of a scope, the newest first; reads no others. */
  page(paging: Paging, scope: KeyScope): Promise<Page<ApiKey>>;
  /** All of a scope and state, a small part at a time, the newest first (of the deleted, by their ends). */
  each(scope: KeyScope, state: KeyState): AsyncIterable<readonly ApiKey[]>;
}
/** The keys of one project; null: of the organization, those of all projects included. */
export type KeyScope = Principal["credentialScope"];
export type KeyState = "living" | "deleted";

/** The projects that there are, by id. */
export interface KnownProjects {
  nameOf(id: string): Promise<string | undefined>;
}

export interface ApiKeyListQuery extends Paging {
  readonly name?: string;
  readonly query?: string;
  readonly sort_by: "created_at" | "name" | "expires_at";
  readonly sort_direction: "asc" | "desc";
  readonly status: "active" | "deleted" | "all";
}

/** A key beside what its project is called now. */
export interface ShownKey {
  readonly key: ApiKey;
  readonly projectName: string | null;
}
/** A key with its text, which is told this once. */
export interface IssuedKey extends ShownKey {
  readonly text: Secret;
}

/** What the operations of /org/api_keys do. Every refusal has changed nothing. */
export interface ApiKeyOperations {
  create(body: ApiKeyCreate, caller: Caller): Promise<Done<IssuedKey> | Refusal>;
  /** A search ends when `gone` aborts: nobody waits for it any more. */
  list(
    query: ApiKeyListQuery,
    principal: Principal,
    gone?: AbortSignal,
  ): Promise<Done<Page<ShownKey>> | Refusal>;
  get(
    ref: string,
    how: { readonly withDeleted: boolean; readonly principal: Principal },
  ): Promise<Done<ShownKey & { readonly lastUsedAt?: Millis }> | Refusal>;
  rename(ref: string, patch: ApiKeyPatch, principal: Principal): Promise<Done<ShownKey> | Refusal>;
  remove(ref: string, caller: Caller): Promise<Done<null> | Refusal>;
  rotate(ref: string, body: ApiKeyRotate, caller: Caller): Promise<Done<IssuedKey> | Refusal>;
}
