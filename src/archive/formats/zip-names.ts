/** What an entry says of itself in the archive's directory. */
interface EntryInfo {
  readonly name: string;
  readonly sizeBytes: number;
  /** The upper half of its external attributes: a mode of Unix, 0 where the archive was made elsewhere. */
  readonly mode: number;
}

/** Longer than any path of an extension, and with room for ours before it within the 4096 bytes of a path. */
const maxNameBytes = 1024;
const maxPartBytes = 255;
/** Deeper than any extension, and so that looking at the parents of ten thousand names stays cheap. */
const maxDepth = 64;
const fileType = 0o170000;
const regularFile = 0o100000;
const directory = 0o040000;

export const isDirectory = ({ name }: EntryInfo): boolean => name.endsWith("/");
/** Ignores case and how accents are composed, because on other systems two such names would be one file. */
const folded = (name: string): string => name.normalize("NFC").toLowerCase().replace(/\/$/, "");

/** Why an entry cannot be unpacked, each as a sentence's end after its name. */
export function entryFaults(entry: EntryInfo): readonly string[] {
  const { name, mode, sizeBytes } = entry;
  const parts = name.replace(/\/$/, "").split("/");
  const type = mode & fileType;
  const checks: readonly (readonly [boolean, string])[] = [
    [/\p{Cc}/u.test(name), "has a control character in its name"],
    [name.includes("\\"), "has a backslash in its name; names are parted by /"],
    [name.startsWith("/") || /^[a-zA-Z]:/.test(name), "has an absolute name"],
    [parts.includes(".."), "leads out of the archive"],
    [
      !name.startsWith("/") && parts.some((part) => part === "" || part === "."),
      "has an empty part or . in its name",
    ],
    [
      Buffer.byteLength(name) > maxNameBytes || parts.some((part) => Buffer.byteLength(part) > maxPartBytes),
      "has too long a name",
    ],
    [parts.length > maxDepth, `is nested deeper than ${maxDepth} directories`],
    [type !== 0 && type !== regularFile && type !== directory, "is a link or a special file"],
    [
      isDirectory(entry) && (sizeBytes > 0 || type === regularFile),
      "is a directory by its name and a file by its content",
    ],
    [!isDirectory(entry) && type === directory, "is a file by its name and a directory by its mode"],
  ];
  return checks.flatMap(([isSo, what]) => (isSo ? [what] : []));
}

/** Names that mean one file twice, or a file where others need a directory. */
export function findCollisions(entries: readonly EntryInfo[]): readonly string[] {
  const seen = new Map<string, EntryInfo>();
  const twice: string[] = [];
  for (const entry of entries) {
    if (seen.has(folded(entry.name))) twice.push(entry.name);
    else seen.set(folded(entry.name), entry);
  }
  const isFile = (name: string): boolean => {
    const found = seen.get(name);
    return found !== undefined && !isDirectory(found);
  };
  return [
    ...twice,
    ...entries.map(({ name }) => name).filter((name) => parentsOf(folded(name)).some(isFile)),
  ];
}

/** The directories above an entry, the outermost first. */
export const parentsOf = (name: string): string[] =>
  name
    .split("/")
    .slice(0, -1)
    .map((_part, index, parts) => parts.slice(0, index + 1).join("/"));

/** What shows in a message of a name that may hold anything. */
export const shownName = (name: string): string =>
  JSON.stringify(name.length > 80 ? `${name.slice(0, 80)}…` : name);
