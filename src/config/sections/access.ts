import { Type } from "typebox";
import { count, switched, text, textOr } from "../kinds.js";
import { oidcSection } from "./oidc.js";

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
