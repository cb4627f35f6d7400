import { type Command, codes, errorReply, type Params, parseCommand } from "../cdp/command.js";
import type { measure } from "../cdp/json-shape.js";
import { tellCommand } from "../../telemetry/commands/tell.js";
import type { Gate, Judgement, GateContext } from "./gate.js";

/** What becomes of one message: an error for its sender, or a command and what the gate says of it. */
export type JudgedMessage =
  | { readonly kind: "fault"; readonly reply: string }
  | { readonly kind: "command"; readonly command: Command; readonly judgement: Judgement };

export interface JudgeContext {
  readonly gate: Gate;
  readonly context: GateContext;
}

export function judgeMessage(
  message: Buffer,
  { gate, context }: JudgeContext,
  shape?: ReturnType<typeof measure>,
): JudgedMessage {
  const parsed = parseCommand(message, shape);
  if (parsed.kind === "fault") return parsed;
  const { command } = parsed;
  return { kind: "command", command, judgement: gate(command, context) };
}

/**
 * The same, to be handed to another thread: what goes on is written out, with what an event may say of it
 * where somebody listens, and only what the bridge looks at is left of the params.
 */
export function judgeAndWrite(
  message: Buffer,
  judging: JudgeContext & { isObserved: boolean },
): JudgedMessage {
  const judged = judgeMessage(message, judging);
  if (judged.kind === "fault") return judged;
  const { command, judgement } = judged;
  if (judgement.kind !== "pass") return { ...judged, command: { ...command, params: {} } };
  const told = judging.isObserved ? tellCommand(judgement.command) : undefined;
  const passed = {
    ...judgement.command,
    ...(told && { told }),
    params: lookedAt(judgement.command.params),
    written: Buffer.from(written(judgement.command)),
  };
  return {
    kind: "command",
    command: { ...command, params: {} },
    judgement: { kind: "pass", command: passed },
  };
}

/** Method and params as they go to Chromium. */
export const written = ({ method, params }: Pick<Command, "method" | "params">): string =>
  `"method":${JSON.stringify(method)},"params":${JSON.stringify(params)}`;

const longestId = 64;
const isShort = (value: unknown): boolean =>
  typeof value === "boolean" || (typeof value === "string" && value.length <= longestId);
function lookedAt(params: Params): Params {
  const { targetId, sessionId, autoAttach, disposeOnDetach, serializationOptions } = params;
  const short = Object.entries({ targetId, sessionId, autoAttach, disposeOnDetach });
  return {
    ...Object.fromEntries(short.filter(([, value]) => isShort(value))),
    // Only whether there are any is looked at.
    ...(serializationOptions !== undefined && { serializationOptions: {} }),
  };
}

/** The reply to a message that could not be judged. */
export const unjudged = (to: Parameters<typeof errorReply>[0], message: string): JudgedMessage => ({
  kind: "fault",
  reply: errorReply(to, codes.refused, message),
});
