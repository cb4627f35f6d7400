import { leaves, type Leaf } from "./settings.js";

interface SettingRow {
  readonly name: string;
  readonly unit: string;
  readonly usual: string;
  readonly description: string;
  readonly env: string;
}

// The default as the table shows it; a setting that may be null says beside it what null means.
function usual({ setting }: Leaf): string {
  if (setting.default === null) return setting.otherwise ?? "";
  const value = typeof setting.default === "string" ? setting.default : JSON.stringify(setting.default);
  return setting.otherwise === undefined ? value : `${value} (null: ${setting.otherwise})`;
}

const rowOf = (leaf: Leaf): SettingRow => ({
  name: leaf.path.join("."),
  unit: leaf.setting.unit ?? "",
  usual: usual(leaf),
  description: leaf.setting.description,
  env: leaf.setting.env ?? "",
});

/** `REMUDA_CONFIG` chooses the file, so no file can hold it. */
const configRow: SettingRow = {
  name: "",
  unit: "",
  usual: "config/default.json",
  description: "the configuration file",
  env: "REMUDA_CONFIG",
};
const rows: readonly SettingRow[] = [configRow, ...leaves.map(rowOf)];

const code = (text: string): string => (text === "" ? "" : `\`${text}\``);
const cell = (text: string): string =>
  text.replaceAll("|", "\\|").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

const cellsOf = (row: SettingRow): readonly string[] => [
  code(row.name),
  code(row.env),
  row.unit,
  cell(row.usual),
  cell(row.description),
];

/** Every setting as a Markdown table: docs/settings.md holds it, and a test holds the page to it. */
export const settingsTable = (): string =>
  [
    "| setting | environment | unit | default | meaning |",
    "| --- | --- | --- | --- | --- |",
    ...rows.map((row) => `| ${cellsOf(row).join(" | ")} |`),
  ].join("\n");

const oneSetting = (row: SettingRow): string => {
  const head = [row.name, row.env && `[${row.env}]`].filter(Boolean).join("  ");
  const unit = /^-?\d/.test(row.usual) ? row.unit : row.unit && `(${row.unit})`;
  const standard = [row.usual, unit].filter(Boolean).join(" ");
  return `  ${head}\n      ${row.description}\n      default: ${standard}`;
};

/** What `npm start -- --help` prints. */
export const helpText = (): string =>
  [
    "Remuda keeps pools of warm Chromium browsers and lends them out.",
    "",
    "  npm start               start the daemon (installs and builds what is missing)",
    "  npm start -- --help     this page",
    "  npm start -- --open-loopback[=PORT]",
    "                          for a trial: lets browsers reach all of this machine's loopback, or one port of it;",
    "                          whatever listens there (databases, notebooks, container sockets) is open to every page",
    "  npm test                types, lint and tests",
    "",
    "Settings stand in a JSON file, sections as nested objects; a variable in [brackets] overrides the file.",
    "",
    ...rows.map(oneSetting),
  ].join("\n");
