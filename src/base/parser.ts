import { type Static, type TSchema, Type } from "typebox";
import { Compile } from "typebox/compile";

/** A list that nobody changes. */
export const readonlyList = <const Item extends TSchema>(item: Item) =>
  Type.Unsafe<readonly Static<Item>[]>(Type.Array(item));

/** Reads what another process wrote, as a schema has it; throws where it is anything else. */
interface Parser<Value> {
  value(given: unknown): Value;
  json(text: string): Value;
}

/** `what` stands in the error, which names places in the value and nothing that stands there. */
export function parserOf<const Schema extends TSchema>(what: string, schema: Schema): Parser<Static<Schema>> {
  let compiled: ReturnType<typeof compile> | undefined;
  const compile = () => Compile(schema);
  const value = (given: unknown): Static<Schema> => {
    // Compiling takes some milliseconds, and most processes read few of all kinds.
    compiled ??= compile();
    if (compiled.Check(given)) return given;
    const faults = compiled.Errors(given).map(({ instancePath, message }) => `${instancePath} ${message}`);
    throw new Error(`${what} is not as it has to be: ${faults.slice(0, mostFaults).join("; ")}`);
  };
  return { value, json: (text) => value(JSON.parse(text)) };
}
const mostFaults = 5;

/** So many texts are known at once; then they are forgotten, together. */
const mostKnown = 2000;

/** Reads a text that comes again and again, and gives the same value each time, which nobody may change. */
export function knownTexts<Value>(read: (text: string) => Value): (text: string) => Value {
  const known = new Map<string, Value>();
  return (text) => {
    const before = known.get(text);
    if (before !== undefined) return before;
    const value = read(text);
    if (known.size >= mostKnown) known.clear();
    known.set(text, value);
    return value;
  };
}
