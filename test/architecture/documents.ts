import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { root } from "./sources.js";

const folders = ["config", "docs", "k8s", "scripts", "src", "test"].filter((folder) =>
  existsSync(join(root, folder)),
);
const papers = ["CHANGELOG.md", "CONTRIBUTING.md", "DECISIONS.md", "Dockerfile", "README.md", "SECURITY.md"];

/** What is ours: whatever a user saves beside it counts for nothing. */
export const files: readonly string[] = [
  ...papers,
  ...folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map((path) =>
      posix.join(folder, path),
    ),
  ),
];

export const textOf = (path: string): string => readFileSync(join(root, path), "utf8");

const withoutCode = (text: string): string => text.replaceAll(/^```.*?^```$/gms, "");

/** The name that GitHub gives the section of a heading. */
const slugOf = (heading: string): string =>
  heading
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replaceAll(/\s/g, "-");

function sectionsOf(text: string): ReadonlySet<string> {
  const headings = [...withoutCode(text).matchAll(/^#{1,6} +(.+)$/gm)].map(([, heading]) =>
    slugOf(heading ?? ""),
  );
  const anchors = [...text.matchAll(/<a id="([\w-]+)">/g)].map(([, id]) => id ?? "");
  return new Set([...headings, ...anchors]);
}

export const pages: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  files.filter((path) => path.endsWith(".md")).map((path) => [path, sectionsOf(textOf(path))]),
);

/** What is wrong with a place in a page, such as `docs/api.md` and `reuse`; undefined where it is there. */
export function faultOfPlace(page: string, section: string | undefined): string | undefined {
  const sections = pages.get(page);
  if (sections === undefined) return `there is no ${page}`;
  return section === undefined || sections.has(section) ? undefined : `${page} has no section #${section}`;
}

/** `[text](target)` of a page that lead to somewhere in the repository. */
export const linksOf = (page: string): readonly (readonly [path: string, section: string | undefined])[] =>
  [...withoutCode(textOf(page)).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target]) => target ?? "")
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => {
      const [path = "", section] = target.split("#");
      return [path === "" ? page : posix.join(posix.dirname(page), path), section] as const;
    });
