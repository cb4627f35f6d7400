import { isatty } from "node:tty";
import { type DestinationStream, destination, pino } from "pino";
import type { Log } from "../base/log.js";

export const logLevels = ["debug", "info", "warn", "error", "silent"] as const;
export type LogLevel = (typeof logLevels)[number];

export interface LogOptions {
  readonly level: LogLevel;
  /** `auto`: text for a person at a terminal, JSON otherwise. */
  readonly format: "auto" | "json" | "text";
  /** 1 is standard output, 2 standard error. */
  readonly descriptor: 1 | 2;
  /** On every line: the role, the node. */
  readonly fields?: Readonly<Record<string, unknown>>;
}

/** One line per event, written before the call returns: what is logged last before the end of the process is not lost. */
export function openLog(options: LogOptions): Log {
  const { format, descriptor } = options;
  const stream = openDescriptor(descriptor);
  const isText = format === "text" || (format === "auto" && isatty(descriptor));
  return makeLog(options, isText ? asText(stream) : stream);
}

export const makeLog = ({ level, fields = {} }: Pick<LogOptions, "level" | "fields">, to: DestinationStream): Log =>
  pino(
    {
      level,
      base: { pid: process.pid, ...fields },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: [...secretFields, ...secretFields.map((field) => `*.${field}`)], censor: "[secret]" },
      serializers: { error: errorFields, err: errorFields },
    },
    to,
  );

/** Code does not log these; should it come to, their values are hidden, one level down as well. */
const secretFields = [
  "authorization", "apiKey", "api_key", "cookie", "key", "password", "passphrase", "secret", "token", "proxyPassword",
  'headers["proxy-authorization"]', "cdp_ws_url", "webdriver_ws_url",
];

function openDescriptor(descriptor: 1 | 2): DestinationStream {
  const stream = destination({ dest: descriptor, sync: true });
  // Whoever read our lines has gone (`| head`): that is no reason to end.
  stream.on("error", () => {});
  return stream;
}

/** `18:03:11.123 info  lease granted pool=herd waitedMs=2` */
const asText = (to: DestinationStream): DestinationStream => ({
  write(line) {
    const { level, time, pid: _pid, msg, error, ...fields } = JSON.parse(line) as Record<string, unknown>;
    const shown = Object.entries(fields).map(([name, value]) => ` ${name}=${typeof value === "string" ? value : JSON.stringify(value)}`);
    to.write(`${String(time).slice(11, 23)} ${String(level).padEnd(5)} ${String(msg)}${shown.join("")}${errorText(error)}\n`);
  },
});

const errorText = (error: unknown): string => {
  if (typeof error !== "object" || error === null) return error === undefined ? "" : ` error=${String(error)}`;
  const { stack, message, cause } = error as ErrorFields;
  return `\n  ${stack ?? message}${cause === undefined ? "" : `\n  caused by${errorText(cause)}`}`;
};

interface ErrorFields {
  readonly type: string;
  readonly message: string;
  readonly code?: unknown;
  readonly stack?: string;
  readonly cause?: ErrorFields | string;
  readonly errors?: readonly (ErrorFields | string)[];
}

const deepestCause = 5;

/** The known parts only: what libraries hang on their errors (a command with its arguments, a request with its headers) may be secret. */
function errorFields(thrown: unknown, depth = 0): ErrorFields | string {
  if (!(thrown instanceof Error)) return typeof thrown === "string" ? thrown : "[not an error]";
  const inner = (error: unknown): ErrorFields | string => (depth < deepestCause ? errorFields(error, depth + 1) : "[deeper]");
  return {
    type: thrown.name,
    message: thrown.message,
    ...("code" in thrown && { code: thrown.code }),
    ...(thrown.stack !== undefined && { stack: thrown.stack }),
    ...(thrown.cause !== undefined && { cause: inner(thrown.cause) }),
    ...(thrown instanceof AggregateError && { errors: thrown.errors.map(inner) }),
  };
}
