import { isatty } from "node:tty";
import { type DestinationStream, type Logger, type LoggerOptions, pino } from "pino";
import type { Clock, Millis } from "../base/clock.js";
import type { Log } from "../base/log.js";
import { RateLimit } from "../base/rate-limit.js";
import { countDropped, LogWriter, openStream } from "./log-writer.js";

const pinoLevels = ["debug", "info", "warn", "error", "silent"] as const;
export type LogLevel = (typeof pinoLevels)[number];

interface LogOptions {
  readonly level: LogLevel;
  /** `auto`: text for a person at a terminal, JSON otherwise. */
  readonly format: "auto" | "json" | "text";
  /** 1 is standard output, 2 standard error. */
  readonly descriptor: 1 | 2;
  /** The room for lines that wait to be written; what comes while it is full is dropped and counted. */
  readonly bufferBytes: number;
  /**
   * The limit of one message about one browser, or about none; null: no limit. Lines of level debug have
   * none.
   */
  readonly maxLinesPerSecond: number | null;
  readonly clock: Clock;
  /** These stand on every line: the role, the node. */
  readonly fields?: Readonly<Record<string, unknown>>;
}

interface OpenLog {
  readonly log: Log;
  /**
   * Says what was suppressed and waits until all lines are written, at most `limitMs`: before the end of the
   * process.
   */
  close(limitMs: Millis): Promise<void>;
}

/**
 * Writes one line per event. Nobody waits for it to be written: a reader who is slow, stopped or gone costs
 * lines, never time.
 */
export function openLog(options: LogOptions): OpenLog {
  const { format, descriptor, bufferBytes, maxLinesPerSecond, clock } = options;
  const onRoom = (lines: number): void =>
    log.warn({ dropped: lines }, "log lines dropped: they were not read fast enough");
  const writer = new LogWriter(openStream(descriptor), { maxBytes: bufferBytes, onRoom });
  const onSuppressed = (key: string, count: number): void => {
    countDropped("rate_limit", count);
    const [message, browser] = key.split("\n");
    log.warn(
      { suppressed: count, message, ...(browser && { browser }) },
      "log lines suppressed: there were too many of one kind",
    );
  };
  const limit =
    maxLinesPerSecond === null
      ? undefined
      : new RateLimit({ clock, perSecond: maxLinesPerSecond, onSuppressed });
  const isText = format === "text" || (format === "auto" && isatty(descriptor));
  const log = makeLog({ ...options, ...(limit && { limit }) }, isText ? asText(writer) : writer);
  return {
    log,
    async close(limitMs) {
      limit?.flush();
      await writer.close(clock, limitMs);
    },
  };
}

type MakeOptions = Pick<LogOptions, "level" | "fields"> & { readonly limit?: RateLimit };

export const makeLog = ({ level, fields = {}, limit }: MakeOptions, to: DestinationStream): Log =>
  pino(
    {
      level,
      base: { pid: process.pid, ...fields },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: bounded },
      redact: { paths: [...secretFields, ...secretFields.map((field) => `*.${field}`)], censor: "[secret]" },
      serializers: { error: errorFields, err: errorFields },
      ...(limit && { hooks: { logMethod: limited(limit) } }),
    },
    to,
  );

type LogMethod = NonNullable<NonNullable<LoggerOptions["hooks"]>["logMethod"]>;

/** Messages are fixed texts, so there are few keys: whoever makes us say one often hides no other. */
const limited = (limit: RateLimit): LogMethod =>
  function (this: Logger, ...[args, method, level]) {
    const [fields, message] = args as unknown as [{ readonly browser?: unknown }, string];
    const key = typeof fields.browser === "string" ? `${message}\n${fields.browser}` : message;
    if (level <= debugLevel || limit.admits(key)) method.apply(this, args);
  };

// The number that pino gives this level.
const debugLevel = 20;
const longestText = 2000;
const longestStack = 8000;

/**
 * A text of an outsider's may be long, and may hold what a terminal obeys and JSON does not escape (C1
 * controls).
 */
const boundedText = (text: string, most = longestText): string =>
  withoutC1(text.length > most ? `${text.slice(0, most)}… [${text.length} characters]` : text);

const bounded = (fields: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      typeof value === "string" ? boundedText(value) : value,
    ]),
  );

const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
const withoutC1 = (text: string): string => text.replaceAll(/[\u007f-\u009f\u2028\u2029]/g, escaped);

/** Code does not log these; should it come to, their values are hidden, one level down as well. */
const secretFields = [
  "authorization",
  "apiKey",
  "api_key",
  "cookie",
  "key",
  "password",
  "passphrase",
  "secret",
  "token",
  "proxyPassword",
  'headers["proxy-authorization"]',
  "cdp_ws_url",
  "webdriver_ws_url",
];

/** `18:03:11.123 info  lease granted pool=herd waitedMs=2` */
const asText = (to: DestinationStream): DestinationStream => ({
  write(line) {
    const { level, time, pid: _pid, msg, error, ...fields } = JSON.parse(line) as Record<string, unknown>;
    const shown = Object.entries(fields).map(([name, value]) => ` ${name}=${shownValue(value)}`);
    const head = `${String(time).slice(11, 23)} ${String(level).padEnd(5)} ${String(msg)}`;
    to.write(`${head}${shown.join("")}${errorText(error)}\n`);
  },
});

/** A value that could be read as further fields, or as a line of its own, stands in quotes. */
const shownValue = (value: unknown): string =>
  typeof value === "string" && /^[^\s"\p{Cc}\p{Cf}]+$/u.test(value)
    ? value
    : withoutControls(JSON.stringify(value));

const withoutControls = (text: string): string => text.replaceAll(/[^\P{Cc}\n]|\p{Cf}/gu, escaped);

const errorText = (error: unknown): string => {
  if (error === undefined) return "";
  if (typeof error !== "object" || error === null) return ` error=${shownValue(error)}`;
  const { stack, message, cause } = error as ErrorFields;
  const lines = withoutControls(stack ?? message).replaceAll("\n", "\n  ");
  return `\n  ${lines}${cause === undefined ? "" : `\n  caused by${errorText(cause)}`}`;
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

/**
 * The known parts only: what libraries hang on their errors (a command with its arguments, a request with its
 * headers) may be secret.
 */
function errorFields(thrown: unknown, depth = 0): ErrorFields | string {
  if (!(thrown instanceof Error)) return typeof thrown === "string" ? boundedText(thrown) : "[not an error]";
  const inner = (error: unknown): ErrorFields | string =>
    depth < deepestCause ? errorFields(error, depth + 1) : "[deeper]";
  return {
    type: thrown.name,
    message: boundedText(thrown.message),
    ...("code" in thrown && { code: thrown.code }),
    // A `CannotStart` has no stack but its message.
    ...(thrown.stack !== undefined &&
      thrown.stack !== thrown.message && { stack: boundedText(thrown.stack, longestStack) }),
    ...(thrown.cause !== undefined && { cause: inner(thrown.cause) }),
    ...(thrown instanceof AggregateError && { errors: thrown.errors.map(inner) }),
  };
}
