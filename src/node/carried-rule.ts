import { type Command, parseCommand } from "./command.js";
import { type Gate, pass, refuse, type Rule, type Surroundings, type Verdict } from "./gate.js";

const carrier = "Target.sendMessageToTarget";

/** Flat sessions made in there would be nobody's, and the closing of a last page has to be seen before it happens. */
const onSessionsOnly = new Set(["Target.attachToBrowserTarget", "Target.autoAttachRelated", "Target.closeTarget", "Page.close"]);
const mayMakeFlat = new Set(["Target.attachToTarget", "Target.setAutoAttach"]);

const hasToBeSeen = ({ method, params }: Command): boolean =>
  onSessionsOnly.has(method) || (mayMakeFlat.has(method) && params["flatten"] !== undefined && params["flatten"] !== false);

/**
 * A command inside a command, for clients that attach without `flatten`: it is opened, judged as any other, and what was
 * judged goes on, serialised again. Its reply comes back inside an event, whose body is not parsed, so one that is open
 * when its page crashes stays open.
 */
export const carriedRule = (gate: Gate): Rule => ({ method, params }, surroundings) =>
  (method === carrier ? judgeCarried(gate, params, surroundings) : pass);

function judgeCarried(gate: Gate, params: Command["params"], surroundings: Surroundings): Verdict {
  const { message } = params;
  if (typeof message !== "string") return refuse(`${carrier} is refused: its message is no text`);
  const parsed = parseCommand(message);
  if (parsed.kind === "fault") return refuse(`${carrier} is refused: its message is no command (${parsed.reply})`);
  const { command } = parsed;
  if (command.session !== undefined || hasToBeSeen(command)) return refuse(`${command.method} is refused inside a message: send it on a session of its own`);
  const judged = gate(command, surroundings);
  if (judged.kind === "refuse") return judged;
  if (judged.kind === "answer") return refuse(`${command.method} is refused inside a message: send it on a session of its own`);
  return { kind: "rewrite", params: { ...params, message: textOf(judged.command) } };
}

const textOf = ({ id, method, params }: Command): string => JSON.stringify({ id, method, params });
