import type { Millis } from "../base/clock.js";
import type { Refusal } from "../base/errors.js";
import { defaultProject, type ProjectId } from "../base/ids.js";
import type { Policy } from "./policy.js";
import type { Rate } from "./rate-limiter.js";

/** Who answers for a request: a person, or who has made the API key. */
export interface Person {
  readonly id: string;
  readonly email: string;
  readonly name: string | null;
}

/** Who a request is from, and how far it reaches. */
export interface Principal {
  readonly method: "api_key" | "jwt";
  readonly source: "api_key" | "oauth" | "dashboard";
  /** The API key's id, `root` for that of the configuration; null for a session. */
  readonly credentialId: string | null;
  readonly type: "api_key" | "user";
  readonly id: string;
  readonly person: Person;
  /** The only project that the credential reaches; null: every project of the organization. */
  readonly credentialScope: ProjectId | null;
  /** The project that this request is about; null where none was named. */
  readonly effectiveScope: ProjectId | null;
  /** The daemon's time at which a session ends; absent for keys, which are looked up. */
  readonly expiresAt?: Millis;
  /** Absent: everything within the scope is allowed. */
  readonly policy?: Policy;
  /** A person who works with everything within the scope and administers nothing of it. */
  readonly isMember?: true;
}

/** Something that a policy may name; of a browser also the profile and the vaults that it holds. */
export interface Guarded {
  readonly id: string;
  readonly profile?: { readonly id: string; readonly save: boolean };
  readonly vaults?: readonly string[];
}

/** What a request shows of itself: two of its headers, and by its path whether it has a rate. */
interface Credentials {
  readonly authorization: string | undefined;
  /** `X-Kernel-Project-Id`. */
  readonly project: string | undefined;
  /** The request is not taken out of its caller's rate, nor held up by it (docs/limits.md#of-one-caller). */
  readonly isUncounted?: true;
}

/**
 * A refusal names its principal where the credential was good and something else was not. `rate` is there
 * where requests of the caller have one.
 */
export type Admitted = { readonly rate?: Rate } & (
  | { readonly kind: "admitted"; readonly principal: Principal }
  | (Refusal & { readonly principal?: Principal })
);

/** An API key that a script judges before it does anything, and the project that the request is about. */
export interface JudgedKey {
  readonly digest: string;
  readonly project: ProjectId;
}

/**
 * A request whose API key is judged by the first script that it runs, in place of a round trip before. Until
 * then nothing of it is done, and nothing is answered (http/admission/admission.ts).
 */
export interface DeferredAdmission {
  /** Whom the key let in when it came last here. All of it is as the key was made; only its end is not. */
  readonly principal: Principal;
  /** What the next script is to judge; undefined once that is done. */
  due(): JudgedKey | undefined;
  /** Says that a script has found the key good, and has taken the request out of its rate. */
  letIn(rate: Rate | undefined): void;
  /** Whether it was let in, and what is left of its rate; undefined while it is not judged, or refused. */
  outcome(): Admitted | undefined;
  /** What came of it; a look-up of its own where no script has judged it. */
  judge(): Promise<Admitted>;
}

/** Decides who a request is from and whether it is let in. What needs no look-up is answered at once. */
export interface Authenticator {
  admit(shown: Credentials): Admitted | Promise<Admitted>;
  /**
   * For a request whose first script can judge its key. Undefined where it has to be admitted before, as a
   * key that has not come lately here.
   */
  defer(shown: Credentials): DeferredAdmission | undefined;
}

const rootKeyId = "root";

/**
 * Who the key of the configuration stands for: it reaches everything, and answers for what a start declares.
 */
export const rootPrincipal = (person: Person): Principal => ({
  method: "api_key",
  source: "api_key",
  credentialId: rootKeyId,
  type: "api_key",
  id: rootKeyId,
  person,
  credentialScope: null,
  effectiveScope: null,
});

/** The API key that a request came with; undefined for the root key, which never ends, and for people. */
export const keyOf = ({ credentialId }: Principal): string | undefined =>
  credentialId === null || credentialId === rootKeyId ? undefined : credentialId;

/** Tells one principal from every other. */
export const principalKey = ({ type, id }: Principal): string => `${type} ${id}`;

/** The project whose things a request is about: that of the key or the header, else the default one. */
export const projectOfRequest = ({ effectiveScope }: Principal): ProjectId =>
  effectiveScope ?? defaultProject;
