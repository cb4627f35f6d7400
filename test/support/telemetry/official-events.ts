import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { parseAst } from "rolldown/parseAst";
import type { SeenEvent } from "../../../src/telemetry/event.js";

/** What the official client's types say of one type of event. */
export interface OfficialEvent {
  readonly type: string;
  readonly category: string;
  /** The fields that its `data` always has. */
  readonly required: readonly string[];
  /** Whether a value is of the type that a field of its `data` has; fields that are not known are of none. */
  fits(field: string, value: unknown): boolean;
}

/** As much of a node of the syntax tree (ESTree with TypeScript, by oxc) as is read here. */
interface Node {
  readonly type: string;
  readonly declaration?: Node | null;
  readonly id?: { readonly name?: string };
  readonly body?: Node | readonly Node[] | { readonly body: readonly Node[] };
  readonly typeAnnotation?: Node;
  readonly typeName?: Node;
  readonly types?: readonly Node[];
  readonly key?: { readonly name?: string };
  readonly optional?: boolean;
  readonly literal?: { readonly value?: unknown };
  readonly name?: string;
  readonly left?: Node;
  readonly right?: Node;
  readonly object?: Node;
  readonly property?: Node;
  readonly extends?: readonly { readonly expression: Node }[];
}

const union = "BrowserTelemetryEvent";

/** Words that the official client's types do not know yet; the public service says them, too. */
const additions: Readonly<Record<string, readonly unknown[]>> = { target_type: ["iframe", "worker"] };

/**
 * The events of the installed `@onkernel/sdk`, read from its declarations: the members of its union, by their
 * type.
 */
export function officialEvents(): ReadonlyMap<string, OfficialEvent> {
  const module = createRequire(import.meta.url).resolve("@onkernel/sdk/resources/browsers/telemetry");
  const path = module.replace(/js$/, "d.ts");
  const { body } = parseAst(readFileSync(path, "utf8"), { lang: "dts" }, path) as unknown as {
    readonly body: readonly Node[];
  };
  const declared = new Map<string, Node>();
  declare(body, "", declared);
  const members = declared.get(union)?.typeAnnotation?.types ?? [];
  const events = members.map((member) => eventOf(nameOf(member), declared));
  return new Map(events.map((event) => [event.type, event]));
}

/** What events have otherwise than the official client's types say, as lines that a failing test shows. */
export function lackedBy(
  events: readonly Pick<SeenEvent, "type" | "category" | "data">[],
): readonly string[] {
  const official = officialEvents();
  const lacking = events.flatMap(({ type, category, data }) => {
    const known = official.get(type);
    if (!known) return [];
    const fields = known.required.filter((field) => data[field] === undefined);
    const others = Object.entries(data).filter(
      ([field, value]) => !known.fits(field, value) && !additions[field]?.includes(value),
    );
    const isOther = known.category !== category;
    return [
      ...fields.map((field) => `${type} without ${field}`),
      ...others.map(([field, value]) => `${type} has ${field} ${JSON.stringify(value)}`),
      ...(isOther ? [`${type} is ${category}`] : []),
    ];
  });
  return [...new Set(lacking)];
}

/** Notes all types by their names, with those of the namespaces that they stand in before them. */
function declare(nodes: readonly Node[], prefix: string, declared: Map<string, Node>): void {
  for (const node of nodes) {
    const found = node.declaration ?? node;
    const name = `${prefix}${found.id?.name ?? ""}`;
    if (found.type === "TSModuleDeclaration") declare(partsOf(found), `${name}.`, declared);
    else if (found.type === "TSInterfaceDeclaration" || found.type === "TSTypeAliasDeclaration")
      declared.set(name, found);
  }
}

/** The statements of a namespace, or the members of an interface or of a type that is written out. */
function partsOf({ body }: Node): readonly Node[] {
  if (body === undefined) return [];
  if (Array.isArray(body)) return body as readonly Node[];
  return (body as { readonly body: readonly Node[] }).body;
}

const nameOf = ({ typeName }: Node): string => (typeName ? pathOf(typeName) : "");

/** The name of a type with those of its namespaces; `TelemetryAPI` is the file itself. */
function pathOf({ name = "", left, right, object = left, property = right }: Node): string {
  const path = object && property ? `${pathOf(object)}.${pathOf(property)}` : name;
  return path.replace(/^TelemetryAPI\./, "");
}

function eventOf(name: string, declared: ReadonlyMap<string, Node>): OfficialEvent {
  const members = new Map(membersOf(name, declared).map((member) => [member.key?.name, member]));
  const word = (key: string): string => String(typeOf(members.get(key))?.literal?.value);
  const data = typeOf(members.get("data"));
  const fields = data ? membersOf(nameOf(data), declared) : [];
  const types = new Map(fields.map((field) => [field.key?.name, typeOf(field)]));
  return {
    type: word("type"),
    category: word("category"),
    required: fields.filter(({ optional }) => !optional).map(({ key }) => key?.name ?? ""),
    fits: (field, value) => isOf(types.get(field), value, declared),
  };
}

const primitives: Readonly<Record<string, string>> = {
  TSStringKeyword: "string",
  TSNumberKeyword: "number",
  TSBooleanKeyword: "boolean",
};

/** Whether a value is of a type, as far as types of events go. */
function isOf(node: Node | undefined, value: unknown, declared: ReadonlyMap<string, Node>): boolean {
  if (!node || value === undefined) return true;
  const { type, types = [], literal } = node;
  if (type in primitives) return typeof value === primitives[type];
  if (type === "TSLiteralType") return literal?.value === value;
  if (type === "TSUnionType") return types.some((each) => isOf(each, value, declared));
  if (type !== "TSTypeReference") return true;
  const name = nameOf(node);
  if (name === "Array") return Array.isArray(value);
  const found = declared.get(name);
  return found?.type === "TSTypeAliasDeclaration"
    ? isOf(found.typeAnnotation, value, declared)
    : typeof value === "object";
}

/** A property's type. */
const typeOf = (member: Node | undefined): Node | undefined => member?.typeAnnotation?.typeAnnotation;

/** The properties of an interface, with those that it inherits. */
function membersOf(name: string, declared: ReadonlyMap<string, Node>): readonly Node[] {
  const node = declared.get(name);
  if (!node) throw new Error(`the declarations have no ${name}`);
  const inherited = (node.extends ?? []).map(({ expression }) => pathOf(expression));
  return [...inherited.flatMap((base) => membersOf(base, declared)), ...partsOf(node)];
}
