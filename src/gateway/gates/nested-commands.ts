import { type Command, parseCommand } from "../cdp/command.js";
import { type Gate, pass, refuseCommand, type Rule, type GateContext, type Verdict } from "./gate.js";

const carrier = "Target.sendMessageToTarget";
/**
 * A worker of a frame of a page is reached by three. Each further one has everything within it read once
 * more.
 */
const mostCarriers = 4;

/**
 * Whom a client is attached to, and the closing of a last page, have to be seen before they happen, and the
 * body of an event is not read.
 */
const onSessionsOnly = new Set([
  "Target.attachToBrowserTarget",
  "Target.attachToTarget",
  "Target.autoAttachRelated",
  "Target.setAutoAttach",
  "Target.closeTarget",
  "Page.close",
]);

/**
 * A command inside a command, for clients that attach without `flatten`: it is opened, judged as any other,
 * and what was judged goes on, serialised again. Its reply comes back inside an event, whose body is not
 * parsed, so one that is open when its page crashes stays open.
 */
export const nestedCommandRule =
  (gate: Gate): Rule =>
  ({ method, params }, context) =>
    method === carrier ? judgeCarried(gate, params, context) : pass;

function judgeCarried(gate: Gate, params: Command["params"], context: GateContext): Verdict {
  const { message } = params;
  const carriers = (context.carriers ?? 0) + 1;
  if (carriers > mostCarriers)
    return refuseCommand(
      `${carrier} is refused: there are more than ${mostCarriers} messages inside each other`,
    );
  if (typeof message !== "string") return refuseCommand(`${carrier} is refused: its message is no text`);
  const parsed = parseCommand(Buffer.from(message));
  if (parsed.kind === "fault")
    return refuseCommand(`${carrier} is refused: its message is no command (${parsed.reply})`);
  const { command } = parsed;
  if (command.session !== undefined || onSessionsOnly.has(command.method))
    return refuseCommand(`${command.method} is refused inside a message: send it on a session of its own`);
  const judged = gate(command, { ...context, carriers });
  if (judged.kind === "refuse") return judged;
  if (judged.kind === "answer")
    return refuseCommand(`${command.method} is refused inside a message: send it on a session of its own`);
  return { kind: "rewrite", params: { ...params, message: textOf(judged.command) } };
}

const textOf = ({ id, method, params }: Command): string => JSON.stringify({ id, method, params });
