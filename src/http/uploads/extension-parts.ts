import type { Detail } from "../../base/errors.js";
import { bounds } from "../../spec/bodies.js";

/**
 * How clients call the parts of POST /browsers/{id}/extensions
 * (docs/extensions-and-profiles.md#into-a-running-browser). A body keeps to one of them.
 * - `indexed`: `extensions[0][name]` with `extensions[0][zip_file]`, in any order (the official client).
 * - `repeated`: the n-th `extensions[][name]` with the n-th `extensions[][zip_file]` (Python's, and old ones
 *   of Node.js).
 * - `consecutive`: `extensions.name` beside its `extensions.zip_file`, whichever comes first (Go's).
 * - `listed`: JSON `extensions`, whose n-th entry names the n-th `extensions.items.zip_file`.
 */
type PartNaming = "indexed" | "repeated" | "consecutive" | "listed";

export interface PartPosition {
  readonly naming: PartNaming;
  /** `list`: names as JSON. */
  readonly role: "name" | "file" | "list";
  readonly index?: number;
}

/** What came under a part's name. */
export type ReceivedPart<File> = { readonly place: PartPosition } & (
  | { readonly names: readonly string[] }
  | { readonly file: File }
);

interface Pair<File> {
  readonly name: string;
  readonly file: File;
}

const places: ReadonlyMap<string, PartPosition> = new Map<string, PartPosition>([
  ["extensions[][name]", { naming: "repeated", role: "name" }],
  ["extensions[][zip_file]", { naming: "repeated", role: "file" }],
  ["extensions.name", { naming: "consecutive", role: "name" }],
  ["extensions.zip_file", { naming: "consecutive", role: "file" }],
  ["extensions", { naming: "listed", role: "list" }],
  ["extensions.items.zip_file", { naming: "listed", role: "file" }],
]);

/** Undefined for a part that the operation does not know. */
export function findPartPosition(part: string): PartPosition | undefined {
  const [, index, field] = /^extensions\[(0|[1-9]\d{0,2})\]\[(name|zip_file)\]$/.exec(part) ?? [];
  if (index === undefined) return places.get(part);
  return { naming: "indexed", role: field === "name" ? "name" : "file", index: Number(index) };
}

/**
 * Names in the JSON text of an `extensions` part: a list of objects or one of them, other fields of which are
 * ignored.
 */
export function parseNames(text: string): readonly string[] | undefined {
  try {
    const names = [JSON.parse(text) as unknown].flat().map(nameIn);
    return names.every((name) => name !== undefined) ? names : undefined;
  } catch {
    return undefined;
  }
}

const nameIn = (entry: unknown): string | undefined =>
  typeof entry === "object" && entry !== null && "name" in entry && typeof entry.name === "string"
    ? entry.name
    : undefined;

/** Brings names and files together, in load order; every fault is told. */
export function pairParts<File>(arrived: readonly ReceivedPart<File>[]): {
  pairs: readonly Pair<File>[];
  faults: readonly Detail[];
} {
  const namings = [...new Set(arrived.map(({ place }) => place.naming))];
  const [naming = "indexed"] = namings;
  if (namings.length > 1)
    return { pairs: [], faults: [faultOf("body", `mixes namings of its parts: ${namings.join(", ")}`)] };
  const slots = slotsOf[naming](arrived);
  // A list may have many thousands, each with faults of its own.
  if (slots.length > mostLookedAt) return { pairs: [], faults: countFaults(slots.length) };
  return {
    pairs: slots.flatMap(pairIn),
    faults: [...countFaults(slots.length), ...slots.flatMap(slotFaults), ...nameFaults(slots)],
  };
}

/** Beyond this many names nobody needs to be told of each. */
const mostLookedAt = 5 * bounds.extensions;

/** One extension to be; whole with one name and one file. */
interface PartGroup<File> {
  readonly label: string;
  readonly names: readonly string[];
  readonly files: readonly File[];
}

const slotsOf: Readonly<
  Record<PartNaming, <File>(arrived: readonly ReceivedPart<File>[]) => readonly PartGroup<File>[]>
> = {
  indexed(arrived) {
    const indexes = [...new Set(arrived.map(({ place }) => place.index ?? 0))].toSorted(
      (one, other) => one - other,
    );
    return indexes.map((index) =>
      slotOf(
        index,
        arrived.filter(({ place }) => place.index === index),
      ),
    );
  },
  repeated: nthWithNth,
  listed: nthWithNth,
  consecutive(arrived) {
    const groups = arrived.reduce<(typeof arrived)[]>((made, next) => {
      const last = made.at(-1);
      const isPartner = last?.length === 1 && last[0]?.place.role !== next.place.role;
      return isPartner ? [...made.slice(0, -1), [...last, next]] : [...made, [next]];
    }, []);
    return groups.map((group, at) => slotOf(at, group));
  },
};

const namesOf = <File>(arrived: readonly ReceivedPart<File>[]): readonly string[] =>
  arrived.flatMap((one) => ("names" in one ? one.names : []));
const filesOf = <File>(arrived: readonly ReceivedPart<File>[]): readonly File[] =>
  arrived.flatMap((one) => ("file" in one ? [one.file] : []));
const slotOf = <File>(index: number, arrived: readonly ReceivedPart<File>[]): PartGroup<File> => ({
  label: `extensions[${index}]`,
  names: namesOf(arrived),
  files: filesOf(arrived),
});

function nthWithNth<File>(arrived: readonly ReceivedPart<File>[]): readonly PartGroup<File>[] {
  const [names, files] = [namesOf(arrived), filesOf(arrived)];
  return Array.from({ length: Math.max(names.length, files.length) }, (_, at) => ({
    label: `extensions[${at}]`,
    names: names.slice(at, at + 1),
    files: files.slice(at, at + 1),
  }));
}

function pairIn<File>({ names: [name], files }: PartGroup<File>): readonly Pair<File>[] {
  return name === undefined ? [] : files.map((file) => ({ name, file }));
}

function countFaults(count: number): readonly Detail[] {
  if (count === 0) return [faultOf("extensions", "must have at least 1 entry")];
  return count > bounds.extensions
    ? [faultOf("extensions", `must have at most ${bounds.extensions} entries`)]
    : [];
}

const slotFaults = <File>({ label, names, files }: PartGroup<File>): readonly Detail[] =>
  [
    { field: "name", count: names.length },
    { field: "zip_file", count: files.length },
  ].flatMap(({ field, count }) => {
    if (count === 1) return [];
    return [faultOf(`${label}.${field}`, count === 0 ? "is required" : "is given more than once")];
  });

const pattern = new RegExp(bounds.namePattern);

function nameFaults<File>(slots: readonly PartGroup<File>[]): readonly Detail[] {
  const names = slots.map((slot) => slot.names[0]);
  return slots.flatMap(({ label }, at) => {
    const name = names[at];
    if (name === undefined) return [];
    if (!pattern.test(name))
      return [faultOf(`${label}.name`, "must be 1 to 255 letters, digits, dots, underscores or hyphens")];
    const first = names.indexOf(name);
    return first < at
      ? [faultOf(`${label}.name`, `is the same as that of ${slots[first]?.label ?? "another"}`)]
      : [];
  });
}

/** A fault in the words of every other bad input. */
export const faultOf = (where: string, what: string): Detail => ({
  code: "invalid_input",
  message: `${where}: ${what}`,
});
