import { isRecord } from "../../base/is-record.js";
import { isText, isTexts } from "../../base/is-text.js";

import { posix } from "node:path";

export type ManifestFields = Readonly<Record<string, unknown>>;
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

interface Shape {
  readonly form: string;
  readonly holds: (value: unknown) => boolean;
}
const texts: Shape = { form: "a list of texts", holds: isTexts };
const fields: Shape = { form: "an object", holds: isRecord };

/**
 * What Chromium 156 refuses when it has another type; of others it only warns (Chromium 156,
 * docs/chromium.md#extensions).
 */
const shapes: Readonly<Record<string, Shape>> = {
  description: { form: "a text", holds: isText },
  permissions: {
    form: "a list of texts",
    holds: (value) => Array.isArray(value) && value.every((one) => isText(one) || isRecord(one)),
  },
  optional_permissions: texts,
  host_permissions: texts,
  action: fields,
  icons: {
    form: "an object of sizes and paths",
    holds: (value) => isRecord(value) && Object.keys(value).every((key) => /^[1-9]\d*$/.test(key)),
  },
  content_scripts: {
    form: "a list of objects",
    holds: (value) => Array.isArray(value) && value.every(isRecord),
  },
};

export const shapeFaults = (manifest: ManifestFields): readonly string[] => [
  ...Object.entries(shapes).flatMap(([key, { form, holds }]) =>
    manifest[key] === undefined || holds(manifest[key]) ? [] : [`${key}: must be ${form}`],
  ),
  ...list(manifest["content_scripts"]).flatMap((script, at) =>
    isRecord(script) ? scriptFaults(script, `content_scripts[${at}]`) : [],
  ),
];

function scriptFaults({ matches, js, css }: ManifestFields, at: string): readonly string[] {
  const lists = Object.entries({ js, css }).filter(([, value]) => value !== undefined && !isTexts(value));
  return [
    ...(isTexts(matches) && matches.length > 0
      ? []
      : [`${at}.matches: must be a list of at least one pattern`]),
    ...lists.map(([key]) => `${at}.${key}: must be a list of texts`),
    ...(lists.length > 0 || list(js).length + list(css).length > 0
      ? []
      : [`${at}: must have at least one file in js or css`]),
  ];
}

/** Files that the manifest names, without which Chromium does not load it. */
export function fileFaults(manifest: ManifestFields, files: ReadonlySet<string>): readonly string[] {
  const missing = namedFiles(manifest).filter(([, path]) => !files.has(normal(path)));
  return missing.map(([field, path]) => `${field}: names ${path}, which is not in the archive`);
}

/** Paths begin at the manifest, with and without a slash. */
const normal = (path: string): string => posix.normalize(`/${path}`).slice(1);

type NamedFile = readonly [field: string, path: string];

function namedFiles(manifest: ManifestFields): readonly NamedFile[] {
  const { background, action, icons, options_page, options_ui, side_panel, chrome_url_overrides } = manifest;
  return [
    ...list(manifest["content_scripts"]).flatMap((script, at) =>
      ["js", "css"].flatMap((kind) =>
        isRecord(script) ? list(script[kind]).flatMap(named(`content_scripts[${at}].${kind}`)) : [],
      ),
    ),
    ...at(background, "background", "service_worker"),
    ...at(options_ui, "options_ui", "page"),
    ...at(side_panel, "side_panel", "default_path"),
    ...at(action, "action", "default_icon"),
    ...named("options_page")(options_page),
    ...each(icons, "icons"),
    ...each(isRecord(action) ? action["default_icon"] : undefined, "action.default_icon"),
    ...each(chrome_url_overrides, "chrome_url_overrides"),
    ...ruleFiles(manifest["declarative_net_request"]),
  ];
}

const named =
  (field: string) =>
  (value: unknown): readonly NamedFile[] =>
    isText(value) ? [[field, value]] : [];
const at = (value: unknown, field: string, key: string): readonly NamedFile[] =>
  isRecord(value) ? named(`${field}.${key}`)(value[key]) : [];
const each = (value: unknown, field: string): readonly NamedFile[] =>
  isRecord(value) ? Object.entries(value).flatMap(([key, path]) => named(`${field}.${key}`)(path)) : [];
const ruleFiles = (value: unknown): readonly NamedFile[] =>
  isRecord(value)
    ? list(value["rule_resources"]).flatMap((rules, index) =>
        at(rules, `declarative_net_request.rule_resources[${index}]`, "path"),
      )
    : [];
