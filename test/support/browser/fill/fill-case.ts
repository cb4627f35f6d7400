import type { FillValue } from "../../../../src/spec/page-fill.js";

/** One page of the corpus, and what a fill comes to there. */
export interface FillCase {
  readonly name: string;
  /** What stands in the body; `{here}` and `{other}` are the site's two origins. */
  readonly body: string;
  /** Other documents of the site, by their paths. */
  readonly others?: Readonly<Record<string, string>>;
  readonly fields: readonly (readonly [selector: string, value: string | FillValue])[];
  /** Runs in the page when everything was checked, before the first write reaches it. */
  readonly beforeWrite?: string;
  /** What is waited for after that; in a case without it, after the fill. */
  readonly until?: string;
  readonly timeoutMs?: number;
  /** The limit holds for each command, so that none before the write is the one. */
  readonly limitsEach?: true;
  readonly status: "completed" | "failed" | "unknown";
  /** The status of each field, and its code behind a blank. */
  readonly outcomes: readonly string[];
  /** All fields of the page and its frames that are not empty afterwards, by their ids. */
  readonly values: Readonly<Record<string, string>>;
}

/** All is filled. */
export const completed = (
  name: string,
  body: string,
  given: Pick<FillCase, "fields" | "values"> & Partial<FillCase>,
): FillCase => ({ name, body, status: "completed", outcomes: given.fields.map(() => "filled"), ...given });

/** One field, which fails; nothing is written. */
export const refused = (
  name: string,
  body: string,
  given: { readonly selector: string; readonly code: string } & Partial<FillCase>,
): FillCase => {
  const { selector, code, ...others } = given;
  return {
    name,
    body,
    fields: [[selector, "secret-1"]],
    status: "failed",
    outcomes: [`failed ${code}`],
    values: {},
    ...others,
  };
};

/** Two fields that are found; the first write comes too late. */
export const changed = (name: string, body: string, given: Partial<FillCase>): FillCase => ({
  name,
  body,
  fields: [
    ["#user", "secret-1"],
    ["#password", "secret-2"],
  ],
  status: "failed",
  outcomes: ["failed target_changed", "not_attempted"],
  values: {},
  ...given,
});

export const login = `<form action="/submitted"><input id="user" autocomplete="username">
  <input id="password" type="password"><button>Sign in</button></form>`;
