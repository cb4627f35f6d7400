import { Type } from "typebox";
import {
  count,
  httpUrl,
  millis,
  minutesOr,
  oneOf,
  seconds,
  switched,
  text,
  textOr,
  texts,
} from "../kinds.js";

/** What may sign tokens: nothing by which who can check one can also make one. */
export const signatureAlgorithms: readonly string[] =
  "RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519".split(" ");
const roles = ["none", "reader", "member"] as const;

const claim = (what: string) => text(`the claim that is ${what}; one within others by a dotted path`);
const values = (role: string) =>
  texts(`values of the role claim of which one makes a person ${role}`, "a list of texts");

const oidcSection = Type.Object({
  issuer: textOr("the OpenID Connect issuer whose tokens let people in, as their `iss` says it")(
    "there are API keys only",
    httpUrl,
  ),
  audience: textOr("whom tokens have to be for: one of what their `aud` names")("none", {}),
  jwks_url: textOr("where the issuer's keys are")("what its discovery document says", httpUrl),
  algorithms: texts(
    "the only ones by which tokens may be signed",
    "a list of texts",
  )(["RS256", "PS256", "ES256", "EdDSA"]),
  clock_tolerance_seconds: seconds("the issuer's clock may be off by", [0, 300])(30),
  max_token_age_minutes: minutesOr("a token that was issued longer ago is refused")(
    "as long as it says itself",
  ),
  id_claim: claim("a person's id")("sub"),
  email_claim: claim("a person's e-mail address")("email"),
  name_claim: claim("a person's name")("name"),
  project_claim: textOr("the claim that is the only project a person reaches; `*` for all of them")(
    "everybody is of the organization",
  ),
  role_claim: claim("a person's role, or a list of roles or groups")("roles"),
  admins: values("an admin")(["admin"]),
  members: values("a member")(["member"]),
  readers: values("a reader")(["reader"]),
  default_role: oneOf("role of whoever has none of these", roles)("none"),
  dashboard_clients: texts(
    "clients whose tokens are sessions of a dashboard: values of `azp` or `client_id`",
    "a list of texts",
  )([]),
  keys_refresh_seconds: seconds("the issuer's keys are fetched again after", [1, 86_400])(600),
  keys_keep_seconds: seconds("they are used so long while they cannot be fetched again", [1, 604_800])(3600),
  keys_cooldown_seconds: seconds(
    "they are fetched once in, whatever tokens name and whether that failed",
    [1, 3600],
  )(30),
  fetch_limit_ms: millis("a fetch of them is given up after", [100, 30_000])(5000),
});

const email = { pattern: "^[^@\\s]+@[^@\\s]+\\.[^@\\s.]+$", form: "an e-mail address" } as const;

export const accessSection = Type.Object({
  root_id: text("who answers for what is done with the root key: the id in `created_by` of its keys")("root"),
  root_email: text("the e-mail address of whoever answers for the root key")("root@remuda.invalid", email),
  root_name: textOr("the name of whoever answers for the root key")("none is told"),
  oidc: oidcSection,
  end_leases_of_deleted_keys: switched(
    "the leases of an API key end with it: where it is deleted, expires, or its grace after a rotation is over",
  )(false),
  max_keys: count("API keys that there may be", "keys")(100_000),
  max_deleted_keys: count("deleted API keys whose records are kept; the oldest go first", "keys")(10_000),
});

export const projectsSection = Type.Object({
  enabled: switched("whether there are projects beside the default one; the same for all daemons")(false),
  max_projects: count("projects of the organization", "projects")(1000),
});
