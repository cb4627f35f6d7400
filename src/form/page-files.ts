import { readFileSync } from "node:fs";
import { join } from "node:path";

interface PageFile {
  readonly path: string;
  readonly type: string;
  readonly bytes: Buffer;
}

const types: Readonly<Record<string, string>> = {
  "form.html": "text/html; charset=utf-8",
  "form.css": "text/css; charset=utf-8",
  "form.mjs": "text/javascript; charset=utf-8",
  "fields.mjs": "text/javascript; charset=utf-8",
  "jwe.mjs": "text/javascript; charset=utf-8",
  "icon.svg": "image/svg+xml",
};

/** The files of the page, each by its path; the page itself is the root. */
export const readPageFiles = (): readonly PageFile[] =>
  Object.entries(types).map(([name, type]) => ({
    path: name === "form.html" ? "/" : `/${name}`,
    type,
    bytes: readFileSync(join(import.meta.dirname, "page", name)),
  }));
