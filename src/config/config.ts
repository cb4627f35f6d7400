import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { textOf } from "../base/log.js";
import { loopbackHosts } from "./arguments.js";
import { freeze } from "./compile.js";
import { contradictions, faultsOfPools } from "./contradictions.js";
import { clashesOf, type ResolvedConfig, resolveConfig } from "./resolve.js";
import type { ConfigFile } from "./schema.js";
import { type Environment, strangeVariables, validate } from "./validate.js";

/**
 * The whole configuration: frozen and complete, with every duration in ms. `compile.ts` makes its names from
 * the file's.
 */
export type Config = ResolvedConfig & {
  /**
   * The environment variables that a child process may inherit. Ours are left out, since they hold secrets.
   */
  readonly childEnvironment: Readonly<Record<string, string>>;
};

type OpenedConfig =
  | { readonly kind: "opened"; readonly config: Config; readonly strangeVariables: readonly string[] }
  | { readonly kind: "refused"; readonly file: string; readonly faults: readonly string[] };

type Read =
  | { readonly kind: "read"; readonly content: unknown }
  | { readonly kind: "unreadable"; readonly fault: string };

// V8's message quotes the text around a syntax error, and that text may be a key.
const withoutExcerpt = (message: string): string =>
  message.replace(/, (\.\.\.)?".*$/s, ", which is not valid JSON");

function readJson(file: string): Read {
  try {
    return { kind: "read", content: JSON.parse(readFileSync(file, "utf8")) };
  } catch (error) {
    return { kind: "unreadable", fault: withoutExcerpt(textOf(error)) };
  }
}

/** The command line opens loopback for a trial, whatever the file says. */
function openLoopback({ egress, ...file }: ConfigFile, opened: "all" | number): ConfigFile {
  const hosts = loopbackHosts(opened);
  const ceiling = egress.private_hosts_ceiling;
  return {
    ...file,
    egress: {
      ...egress,
      private_hosts: [...egress.private_hosts, ...hosts],
      private_hosts_ceiling: ceiling && [...ceiling, ...hosts],
    },
  };
}

const inherited = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR"];
const childEnvironment = (env: Environment): Record<string, string> =>
  Object.fromEntries(inherited.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])));

interface ConfigSource {
  readonly packageRoot: string;
  readonly env?: Environment;
  /** Ports of loopback that the command line opens to browsers. */
  readonly openLoopback?: "all" | number;
}

/**
 * Reads the file that `REMUDA_CONFIG` names (default config/default.json), puts the environment over it, and
 * validates the result. It is refused with all faults at once. Relative paths start at the package's root.
 */
export function openConfig({ packageRoot, env = process.env, ...asked }: ConfigSource): OpenedConfig {
  const file = resolve(packageRoot, env["REMUDA_CONFIG"] || "config/default.json");
  const read = readJson(file);
  if (read.kind === "unreadable") return { kind: "refused", file, faults: [read.fault] };
  const validated = validate(read.content, env);
  if (validated.kind === "faulty")
    return { kind: "refused", file, faults: [...validated.faults, ...faultsOfPools(read.content)] };
  const values =
    asked.openLoopback === undefined ? validated.values : openLoopback(validated.values, asked.openLoopback);
  const resolved = resolveConfig(values, packageRoot);
  const faults = [...contradictions(values), ...clashesOf(resolved)];
  if (faults.length > 0) return { kind: "refused", file, faults };
  const config = freeze({ ...resolved, childEnvironment: childEnvironment(env) });
  return { kind: "opened", config, strangeVariables: strangeVariables(env) };
}
