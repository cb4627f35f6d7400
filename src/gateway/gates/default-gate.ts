import { browserRules } from "./browser-commands.js";
import { nestedCommandRule } from "./nested-commands.js";
import { egressRules } from "./egress-commands.js";
import { fileRules } from "./file-commands.js";
import { type Gate, makeGate } from "./gate.js";

/**
 * The rules in force: first what is opened and judged by all of them, then what is refused outright, last
 * what may be rewritten.
 */
export const defaultGate: Gate = makeGate([
  nestedCommandRule((command, context) => defaultGate(command, context)),
  browserRules,
  egressRules,
  fileRules,
]);
