import { readFileSync } from "node:fs";
import { join } from "node:path";

/** Where the documents say that their commands are run. */
export const repository = join(import.meta.dirname, "../..");

/** What is printed in one section of a document, by its kind: to be typed, saved, or compared. */
export function blocksBetween(
  document: string,
  from: string,
  to: string,
): readonly { readonly kind: string; readonly text: string }[] {
  const page = readFileSync(join(repository, document), "utf8");
  const start = page.indexOf(from);
  const end = page.indexOf(to, start);
  if (start < 0 || end < 0) throw new Error(`${document} has no section from ${from} to ${to}`);
  const found = page.slice(start, end).matchAll(/^```(sh|js|json)\n(.*?)^```/gms);
  return [...found].map(([, kind = "", text = ""]) => ({ kind, text }));
}
