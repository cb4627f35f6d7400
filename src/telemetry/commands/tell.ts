import { isRecord } from "../../base/is-record.js";
import type { ReportedMethod } from "../../spec/reported-methods.js";
import { clipped, type Field, type FieldValue, wrong } from "./fields.js";
import { reportedCommands } from "./methods.js";

/** A command as it was judged. */
interface JudgedCommand {
  readonly id: number;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly session?: string;
}

/** What is told of one command. Nothing in it is secret. */
export interface ReportedCommand {
  readonly method: ReportedMethod;
  /** Absent where the arguments are not those that the command takes: then its event is lost. */
  readonly data?: Readonly<Record<string, FieldValue>>;
}

const rows = new Map<string, readonly (readonly [name: string, field: Field])[]>(
  Object.entries(reportedCommands).map(([method, fields]) => [method, Object.entries(fields)]),
);

/** Says of a command what an event may say; undefined where such commands are not reported. */
export function tellCommand(sent: JudgedCommand): ReportedCommand | undefined {
  const command = sent.method === carrier ? carried(sent) : sent;
  const fields = command && rows.get(command.method);
  if (!fields) return undefined;
  const method = command.method as ReportedMethod;
  const told = read(fields, command.params);
  return told ? { method, data: { method, ...addressOf(command), ...told } } : { method };
}

/**
 * The same of a command that another thread has written out while nobody listened: nothing but its method,
 * since its arguments were not read.
 */
export function tellWritten({
  method,
  written,
}: Pick<JudgedCommand, "method"> & { written: Uint8Array }): ReportedCommand | undefined {
  const name = method === carrier ? carriedMethod(written) : method;
  return name !== undefined && rows.has(name) ? { method: name as ReportedMethod } : undefined;
}

const addressOf = ({ id, session }: JudgedCommand): Record<string, FieldValue> => ({
  command_id: id,
  ...(session === undefined ? {} : { session_id: clipped(session) }),
});

/** Undefined where an argument is missing or is not of its type. */
function read(
  fields: readonly (readonly [string, Field])[],
  params: JudgedCommand["params"],
): Record<string, FieldValue> | undefined {
  const told: Record<string, FieldValue> = {};
  for (const [name, field] of fields) {
    const value = valueOf(field, params);
    if (value === wrong) return undefined;
    if (value !== undefined) told[name] = value;
  }
  return told;
}

function valueOf(field: Field, params: JudgedCommand["params"]): ReturnType<Field["read"]> {
  const argument = argumentAt(field.path, params);
  if (argument === wrong || (argument === undefined && field.isRequired)) return wrong;
  return argument === undefined ? field.absent : field.read(argument);
}

/** Undefined where it was not sent; null stands for that too. */
function argumentAt(path: Field["path"], params: unknown): unknown {
  let value = params;
  for (const name of path) {
    if (typeof value !== "object" || value === null) return wrong;
    value = (value as Record<string, unknown>)[name] ?? undefined;
    if (value === undefined) return undefined;
  }
  return value;
}

const carrier = "Target.sendMessageToTarget";

/**
 * The command that a message to a target carries, within whatever messages. The gate has read and written
 * each of them before (gateway/gates/nested-commands.ts).
 */
function carried({ params: { message, sessionId } }: JudgedCommand): JudgedCommand | undefined {
  const inner: unknown = typeof message === "string" ? JSON.parse(message) : undefined;
  if (!isRecord(inner)) return undefined;
  const { id, method, params } = inner;
  if (typeof id !== "number" || typeof method !== "string") return undefined;
  const command = {
    id,
    method,
    params: isRecord(params) ? params : {},
    ...(typeof sessionId === "string" ? { session: sessionId } : {}),
  };
  return method === carrier ? carried(command) : command;
}

const escaped = (text: string): string => JSON.stringify(text).slice(1, -1);

/** Each further message is escaped once more; the gate has written all of them, `id` and `method` first. */
function carriedMethod(written: Uint8Array): string | undefined {
  const bytes = Buffer.from(written.buffer, written.byteOffset, written.length);
  let key = `"method":"`;
  let [at, name]: [number, string] = [0, carrier];
  while (name === carrier) {
    key = escaped(key);
    at = bytes.indexOf(key, at);
    if (at === -1) return undefined;
    const start = at + key.length;
    name = bytes.toString("latin1", start, bytes.indexOf("\\", start));
  }
  return name;
}
