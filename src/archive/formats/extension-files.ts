import type { ZipEntry } from "./zip.js";

type ExtensionFiles<Entry extends ZipEntry = ZipEntry> =
  /** The files are keyed by their path below the manifest's directory. */
  | { readonly kind: "found"; readonly files: ReadonlyMap<string, Entry> }
  | { readonly kind: "faulty"; readonly faults: readonly string[] };

const manifestName = "manifest.json";
/** What macOS and Windows add to an archive. */
const isLitter = ({ name }: ZipEntry): boolean =>
  name.startsWith("__MACOSX/") || /(?:^|\/)(?:\.DS_Store|Thumbs\.db|desktop\.ini)$/.test(name);

/**
 * The web store's signatures: Chromium loads no unpacked extension that has them (Chromium 156,
 * docs/chromium.md#extensions).
 */
const storeOnly = "_metadata/";

/**
 * The files of an extension: those beside the manifest at the archive's root or, where a folder was packed
 * instead of its content, in the one folder there is.
 */
export function extensionFiles<Entry extends ZipEntry>(entries: readonly Entry[]): ExtensionFiles<Entry> {
  const files = entries.filter((entry) => !entry.isDirectory && !isLitter(entry));
  const root = rootOf(files);
  if (root === undefined)
    return {
      kind: "faulty",
      faults: ["has no manifest.json, neither at its root nor in the only folder at its root"],
    };
  const own = files.map((entry) => [entry.name.slice(root.length), entry] as const);
  return { kind: "found", files: new Map(own.filter(([name]) => !name.startsWith(storeOnly))) };
}

function rootOf(files: readonly ZipEntry[]): string | undefined {
  if (files.some(({ name }) => name === manifestName)) return "";
  const tops = new Set(files.map(({ name }) => name.slice(0, name.indexOf("/") + 1)));
  const [top = ""] = tops;
  return tops.size === 1 && top !== "" && files.some(({ name }) => name === top + manifestName)
    ? top
    : undefined;
}
