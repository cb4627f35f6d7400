import { Check } from "typebox/schema";
import { httpOrigin, httpUrl, type Setting } from "./kinds.js";
import type { ConfigFile } from "./schema.js";
import { expectation, findKeys, type Leaf, leaves } from "./settings.js";

export type Environment = Readonly<Record<string, string | undefined>>;
type Tree = Record<string, unknown>;

type ValidatedFile =
  | { readonly kind: "valid"; readonly values: ConfigFile }
  | { readonly kind: "faulty"; readonly faults: readonly string[] };

const isTree = (value: unknown): value is Tree =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Finds keys that the schema does not know, and sections that are not objects. */
function strangeKeys(tree: Tree, path: readonly string[]): string[] {
  return Object.entries(tree).flatMap(([key, value]) => {
    const here = [...path, key];
    const name = here.join(".");
    if (!findKeys(path)?.has(key)) return [`${name}: there is no such setting`];
    if (findKeys(here) === undefined) return [];
    return isTree(value) ? strangeKeys(value, here) : [`${name}: has to be an object`];
  });
}

const findValue = (tree: Tree, path: readonly string[]): unknown =>
  path.reduce<unknown>(
    (value, key) => (isTree(value) && Object.hasOwn(value, key) ? value[key] : undefined),
    tree,
  );

function put(tree: Tree, path: readonly string[], value: unknown): void {
  const [key = "", ...rest] = path;
  if (rest.length === 0) tree[key] = value;
  else put((tree[key] ??= {}) as Tree, rest, value);
}

/**
 * Reads a number where the setting is one and the text looks like one. Any other text is left for the check
 * to refuse.
 */
function parseText(setting: Setting, text: string): unknown {
  const isNumber = setting.minimum !== undefined && /^-?\d+(\.\d+)?$/.test(text);
  return isNumber ? Number(text) : text;
}

/** An empty variable counts as absent, since container platforms cannot leave one out. */
function findGiven(
  leaf: Leaf,
  file: Tree,
  env: Environment,
): { readonly value: unknown; readonly source: string } | undefined {
  const name = leaf.path.join(".");
  const text = leaf.setting.env === undefined ? undefined : env[leaf.setting.env];
  if (text) return { value: parseText(leaf.setting, text), source: `${leaf.setting.env} (${name})` };
  const value = findValue(file, leaf.path);
  return value === undefined ? undefined : { value, source: name };
}

const urlForms: readonly (string | undefined)[] = [httpOrigin.form, httpUrl.form];

/** No pattern says which port there is, nor which host. */
function isValid(setting: Setting, value: unknown): boolean {
  if (!Check(setting, value)) return false;
  return !urlForms.includes(setting.form) || typeof value !== "string" || URL.canParse(value);
}

// Kubernetes sets <SERVICE>_PORT=tcp://… for every Service of a namespace, so also for one named "remuda".
const hint = (value: unknown): string =>
  typeof value === "string" && value.startsWith("tcp://")
    ? " (set by Kubernetes for a Service: use enableServiceLinks: false)"
    : "";

const variables: ReadonlySet<string | undefined> = new Set([
  "REMUDA_CONFIG",
  ...leaves.map(({ setting }) => setting.env),
]);
/** What Kubernetes sets for a Service whose name begins so, unless a pod has `enableServiceLinks: false`. */
const ofService = /_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_[A-Z]+(_(PROTO|PORT|ADDR))?)$/;
/** That is an address there, and a number where a setting is misspelled. */
const isServicePort = (name: string, value = ""): boolean =>
  name.endsWith("_PORT") && /^[a-z]+:\/\//.test(value);

/** Variables that are called like settings and are none, as one with a typo is. */
export const strangeVariables = (env: Environment): readonly string[] =>
  Object.keys(env)
    .filter((name) => name.startsWith("REMUDA_") && !variables.has(name))
    .filter((name) => !ofService.test(name) && !isServicePort(name, env[name]))
    .toSorted();

const faultOf = (setting: Setting, source: string, value: unknown): string => {
  const shown = setting.secret ? "" : `, and is ${JSON.stringify(value)}${hint(value)}`;
  return `${source}: has to be ${expectation(setting)}${shown}`;
};

/**
 * Puts the environment's values over the file's, and those over the defaults. Reports all faults at once and
 * corrects none.
 */
export function validate(file: unknown, env: Environment): ValidatedFile {
  if (!isTree(file)) return { kind: "faulty", faults: ["the file has to hold one JSON object"] };
  const faults = strangeKeys(file, []);
  const values: Tree = {};
  for (const leaf of leaves) {
    const given = findGiven(leaf, file, env) ?? { value: leaf.setting.default, source: "default" };
    if (!isValid(leaf.setting, given.value)) faults.push(faultOf(leaf.setting, given.source, given.value));
    put(values, leaf.path, given.value);
  }
  return faults.length > 0 ? { kind: "faulty", faults } : { kind: "valid", values: values as ConfigFile };
}
