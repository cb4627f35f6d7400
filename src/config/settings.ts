import type { Setting } from "./kinds.js";
import { ConfigFile } from "./schema.js";

/** One setting and where it stands, such as `["acquire", "max_waiters"]`. */
export interface Leaf {
  readonly path: readonly string[];
  readonly setting: Setting;
}

interface Section {
  readonly properties: Readonly<Record<string, Section | Setting>>;
}

const isSection = (schema: Section | Setting): schema is Section => "properties" in schema;

const leavesOf = (schema: Section | Setting, path: readonly string[]): Leaf[] =>
  isSection(schema)
    ? Object.entries(schema.properties).flatMap(([key, inner]) => leavesOf(inner, [...path, key]))
    : [{ path, setting: schema }];

/** Every setting there is, in the schema's order. */
export const leaves: readonly Leaf[] = leavesOf(ConfigFile as unknown as Section, []);

/** Names of the settings and sections directly below `path`, or undefined where a setting stands there. */
export function findKeys(path: readonly string[]): ReadonlySet<string> | undefined {
  const below = leaves.filter(
    (leaf) => leaf.path.length > path.length && path.every((key, at) => leaf.path[at] === key),
  );
  return below.length === 0 ? undefined : new Set(below.map((leaf) => leaf.path[path.length] ?? ""));
}

const number = (value: number): string =>
  Number.isInteger(value) ? value.toLocaleString("en-US") : String(value);

const shape = (setting: Setting): string => {
  if (setting.enum) return `one of ${setting.enum.join(", ")}`;
  if (setting.form) return setting.form;
  if (setting.type === "boolean") return "true or false";
  if (setting.type === "array") return "a list of objects";
  if (setting.minimum === undefined || setting.maximum === undefined) return "a text that is not empty";
  const kind = setting.type === "number" ? "a number" : "a whole number";
  const unit = setting.unit ? ` (${setting.unit})` : "";
  return `${kind} from ${number(setting.minimum)} to ${number(setting.maximum)}${unit}`;
};

const mayBeNull = (setting: Setting): boolean => Array.isArray(setting.type) && setting.type.includes("null");

/** What a value has to look like, as the end of a sentence: "a whole number from 1 to 600 (s), or null". */
export const expectation = (setting: Setting): string =>
  shape(setting) + (mayBeNull(setting) ? ", or null" : "");
