import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

type Field = readonly [name: string, type: string];

const packageRoot = dirname(createRequire(import.meta.url).resolve("playwright-core/package.json"));
const lines = readFileSync(join(packageRoot, "types/protocol.d.ts"), "utf8").split("\n");

/** Fields of every object type of the installed playwright-core's protocol, by `Domain.Type`. */
function readTypes(): Map<string, Field[]> {
  const found = new Map<string, Field[]>();
  let domain = "";
  let fields: Field[] | undefined;
  for (const line of lines) {
    const [, namespace] = /^ {2}export (?:namespace|module) (\w+) \{/.exec(line) ?? [];
    const [, alias, interfaceName] = /^ {4}export (?:type (\w+) = \{|interface (\w+) \{)$/.exec(line) ?? [];
    const [, name, type] = /^ {6}(\w+)\??: (.+);$/.exec(line) ?? [];
    const opened = alias ?? interfaceName;
    if (namespace !== undefined) domain = namespace;
    else if (opened !== undefined) found.set(`${domain}.${opened}`, (fields = []));
    else if (/^ {4}\}/.test(line)) fields = undefined;
    else if (name !== undefined && type !== undefined) fields?.push([name, type]);
  }
  return found;
}

export const types = readTypes();

const suffix = "Parameters";

/** Every command, as `Domain.command`. */
export const commands: readonly string[] = [...types.keys()]
  .filter((name) => name.endsWith(suffix))
  .map((name) => name.slice(0, -suffix.length));

/**
 * Every parameter of a command, nested ones too, whose own name is one that is asked for, as
 * `Domain.command.param`.
 */
export const paramsNamed = (isMeant: (name: string) => boolean): string[] =>
  commands.flatMap((command) =>
    below(`${command}${suffix}`, command, []).filter((path) =>
      isMeant(path.slice(path.lastIndexOf(".") + 1)),
    ),
  );

function below(typeName: string, prefix: string, seen: readonly string[]): string[] {
  const domain = typeName.split(".")[0];
  return (types.get(typeName) ?? []).flatMap(([name, type]) => {
    const path = `${prefix}.${name}`;
    const inner = type.replaceAll("[]", "");
    const next = inner.includes(".") ? inner : `${domain}.${inner}`;
    return [path, ...(types.has(next) && !seen.includes(next) ? below(next, path, [...seen, next]) : [])];
  });
}
