import { isRecord } from "../base/is-record.js";
import { Secret } from "../base/crypto/secret.js";
import type { SecretText } from "./kinds.js";
import { leaves } from "./settings.js";

type Camel<Text extends string> = Text extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<Camel<Tail>>}`
  : Text;
type Timed<Text extends string> = Text extends `${infer Head}_seconds`
  ? `${Head}_ms`
  : Text extends `${infer Head}_minutes`
    ? `${Head}_ms`
    : Text extends `${infer Head}_hours`
      ? `${Head}_ms`
      : Text;
type Value<Field> = Field extends SecretText
  ? Secret
  : Field extends readonly unknown[] | null
    ? Field
    : Field extends object
      ? Compiled<Field>
      : Field;

/**
 * The file's settings as code reads them: names in camelCase, every duration in ms, secrets that do not
 * print, all of it read-only.
 */
export type Compiled<File> = { readonly [Key in keyof File & string as Camel<Timed<Key>>]: Value<File[Key]> };

const units: readonly (readonly [suffix: RegExp, factor: number])[] = [
  [/_seconds$/, 1000],
  [/_minutes$/, 60_000],
  [/_hours$/, 3_600_000],
];
const secrets = new Set(leaves.filter((leaf) => leaf.setting.secret).map((leaf) => leaf.path.join(".")));
const camel = (key: string): string =>
  key.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

function compileLeaf(key: string, value: unknown, isSecret: boolean): readonly [string, unknown] {
  if (isSecret && typeof value === "string") return [camel(key), new Secret(value)];
  const unit = units.find(([suffix]) => suffix.test(key));
  if (!unit) return [camel(key), value];
  const [suffix, factor] = unit;
  return [camel(key.replace(suffix, "_ms")), typeof value === "number" ? value * factor : value];
}

function compileTree(tree: object, path: string): object {
  return Object.fromEntries(
    Object.entries(tree).map(([key, value]: [string, unknown]) => {
      const isSection = isRecord(value);
      if (isSection) return [camel(key), compileTree(value, `${path}${key}.`)];
      return compileLeaf(key, value, secrets.has(path + key));
    }),
  );
}

export const compile = <File extends object>(file: File): Compiled<File> =>
  compileTree(file, "") as Compiled<File>;

export function freeze<Tree>(tree: Tree): Tree {
  if (typeof tree !== "object" || tree === null) return tree;
  for (const value of Object.values(tree)) freeze(value);
  return Object.freeze(tree);
}
