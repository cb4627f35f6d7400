import { done, type Done, refusal, type Refusal } from "../base/errors.js";

/** A label as it is kept: the white space around it is not part of it. */
export function nameIn(given: string): Done<string> | Refusal {
  const name = given.trim();
  const fault =
    name === "" ? "must not be empty" : /\p{Cc}/u.test(name) ? "must not have control characters" : "";
  if (fault === "") return done(name);
  return refusal("bad_request", { details: [{ code: "invalid_input", message: `name: ${fault}` }] });
}
