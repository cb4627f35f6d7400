import { browserRules } from "./browser-rules.js";
import { carriedRule } from "./carried-rule.js";
import { egressRules } from "./egress-rules.js";
import { fileRules } from "./file-rules.js";
import { type Gate, makeGate } from "./gate.js";

/** The rules in force: first what is opened and judged by all of them, then what is refused outright, last what may be rewritten. */
export const defaultGate: Gate = makeGate([
  carriedRule((command, surroundings) => defaultGate(command, surroundings)), browserRules, egressRules, fileRules,
]);
