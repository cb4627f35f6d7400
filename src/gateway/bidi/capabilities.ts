import { isRecord } from "../../base/is-record.js";

/** What a client may choose for its session. */
export interface SessionOptions {
  readonly acceptInsecureCerts?: boolean;
  readonly unhandledPromptBehavior?: string | Readonly<Record<string, unknown>>;
  readonly "goog:prerenderingDisabled"?: boolean;
  readonly "goog:disableNetworkDurableMessages"?: boolean;
}

/** A session as its client is told of it. */
export interface SessionFacts {
  readonly id: string;
  readonly webSocketUrl: string;
  /** `Chrome/156.0.8078.79`. */
  readonly product: string;
  readonly userAgent: string;
}

type Matched =
  | { readonly kind: "matched"; readonly options: SessionOptions }
  | {
      readonly kind: "refused";
      readonly error: "invalid argument" | "session not created";
      readonly message: string;
    };

const invalid = (message: string): Matched => ({ kind: "refused", error: "invalid argument", message });

/** `Chrome/156.0.8078.79`, `HeadlessChrome/156.0.8078.79`. */
const versionIn = (product: string): string => product.slice(product.indexOf("/") + 1);

/**
 * Matches what a client asks for with what a browser here is (WebDriver 2, 7.2: processing capabilities).
 * Names with a colon belong to others and are not looked at.
 */
export function matchCapabilities(asked: unknown, product: string): Matched {
  if (asked !== undefined && !isRecord(asked)) return invalid("capabilities is no object");
  const { alwaysMatch = {}, firstMatch = [{}] } = asked ?? {};
  if (!isRecord(alwaysMatch)) return invalid("alwaysMatch is no object");
  if (!Array.isArray(firstMatch) || firstMatch.length === 0)
    return invalid("firstMatch is no list of objects");
  let why = "";
  for (const first of firstMatch as unknown[]) {
    if (!isRecord(first)) return invalid("firstMatch is no list of objects");
    const twice = Object.keys(first).find((name) => Object.hasOwn(alwaysMatch, name));
    if (twice !== undefined) return invalid(`${twice} is in alwaysMatch and in firstMatch`);
    const wanted = { ...alwaysMatch, ...first };
    const fault = faultIn(wanted);
    if (fault !== undefined) return invalid(fault);
    const unmet = whyUnmet(wanted, product);
    if (unmet === undefined) return { kind: "matched", options: optionsIn(wanted) };
    why = unmet;
  }
  return { kind: "refused", error: "session not created", message: why };
}

const promptAnswers: readonly unknown[] = [
  "accept",
  "accept and notify",
  "dismiss",
  "dismiss and notify",
  "ignore",
];
const promptKinds = ["alert", "beforeUnload", "confirm", "default", "file", "prompt"];

type ValueCheck = (value: unknown) => boolean;
const isBoolean: ValueCheck = (value) => typeof value === "boolean";
const isText: ValueCheck = (value) => typeof value === "string";
const isPromptChoice: ValueCheck = (value) =>
  isRecord(value)
    ? Object.entries(value).every(
        ([kind, answer]) => promptKinds.includes(kind) && promptAnswers.includes(answer),
      )
    : promptAnswers.includes(value);

/** What a value has to be, of the capabilities that are looked at (WebDriver 2, 7.1; BiDi, 7.1.1.1). */
const checks: readonly (readonly [name: string, check: ValueCheck, fault: string])[] = [
  ["acceptInsecureCerts", isBoolean, "is no boolean"],
  ["webSocketUrl", isBoolean, "is no boolean"],
  ["browserName", isText, "is no text"],
  ["browserVersion", isText, "is no text"],
  ["platformName", isText, "is no text"],
  ["proxy", isRecord, "is no object"],
  ["timeouts", isRecord, "is no object"],
  ["unhandledPromptBehavior", isPromptChoice, "is none of those there are"],
];

/** Null stands for what is not asked for. */
function faultIn(wanted: Record<string, unknown>): string | undefined {
  const wrong = checks.find(
    ([name, check]) => (wanted[name] ?? undefined) !== undefined && !check(wanted[name]),
  );
  return wrong && `${wrong[0]} ${wrong[2]}`;
}

function whyUnmet(wanted: Record<string, unknown>, product: string): string | undefined {
  const { browserName, browserVersion, platformName, proxy } = wanted;
  if (typeof browserName === "string" && !/^chrom(?:e|ium)\b/i.test(browserName))
    return `The browser is chrome, not ${browserName}`;
  if (typeof platformName === "string" && !/^(?:linux|any)$/i.test(platformName))
    return `The platform is linux, not ${platformName}`;
  if (
    typeof browserVersion === "string" &&
    /^\d/.test(browserVersion) &&
    !isVersion(browserVersion, versionIn(product))
  )
    return `The browser's version is ${versionIn(product)}, not ${browserVersion}`;
  return isNoProxy(proxy)
    ? undefined
    : "A proxy is chosen with the session of the browser, not by its clients";
}

const isVersion = (wanted: string, is: string): boolean => is === wanted || is.startsWith(`${wanted}.`);
const isNoProxy = (proxy: unknown): boolean =>
  proxy === undefined ||
  proxy === null ||
  (isRecord(proxy) &&
    Object.entries(proxy).every(([name, value]) => name === "proxyType" && value === "system"));

function optionsIn(wanted: Record<string, unknown>): SessionOptions {
  const { acceptInsecureCerts, unhandledPromptBehavior: prompt } = wanted;
  const flags = (["goog:prerenderingDisabled", "goog:disableNetworkDurableMessages"] as const).filter(
    (name) => wanted[name] === true,
  );
  return {
    ...(acceptInsecureCerts === true && { acceptInsecureCerts }),
    ...((typeof prompt === "string" || isRecord(prompt)) && { unhandledPromptBehavior: prompt }),
    ...Object.fromEntries(flags.map((name) => [name, true])),
  };
}

/**
 * The options as chromium-bidi understands them: of a choice for each kind of prompt it knows no `and
 * notify`, and would answer no such prompt. Each is told of as `browsingContext.userPromptOpened` anyway.
 */
export function mapperOptionsOf(options: SessionOptions): SessionOptions {
  const { unhandledPromptBehavior: prompt } = options;
  if (!isRecord(prompt)) return options;
  const answers = Object.entries(prompt).map(([kind, answer]) => [
    kind,
    String(answer).replace(/ and notify$/, ""),
  ]);
  return { ...options, unhandledPromptBehavior: Object.fromEntries(answers) };
}

/** The options in what another process has written; undefined where there are none. */
export const findOptionsIn = (value: unknown): SessionOptions | undefined =>
  isRecord(value) && faultIn(value) === undefined ? optionsIn(value) : undefined;

/** The session in what another process has written; undefined where there is none. */
export function findSessionFacts(value: unknown): SessionFacts | undefined {
  if (!isRecord(value)) return undefined;
  const { id, webSocketUrl, product, userAgent } = value;
  const isWhole =
    typeof id === "string" &&
    typeof webSocketUrl === "string" &&
    typeof product === "string" &&
    typeof userAgent === "string";
  return isWhole ? { id, webSocketUrl, product, userAgent } : undefined;
}

/** What a new session is answered with, by HTTP and by BiDi alike. */
export const capabilitiesOf = (
  options: SessionOptions,
  { webSocketUrl, product, userAgent }: SessionFacts,
): object => ({
  acceptInsecureCerts: false,
  unhandledPromptBehavior: "dismiss and notify",
  ...options,
  browserName: "chrome",
  browserVersion: versionIn(product),
  platformName: "linux",
  pageLoadStrategy: "normal",
  proxy: {},
  setWindowRect: false,
  strictFileInteractability: false,
  timeouts: { script: 30_000, pageLoad: 300_000, implicit: 0 },
  userAgent,
  webSocketUrl,
});

/**
 * Options in the query of a socket's URL, so that whoever takes the socket need not have seen the request.
 */
export const optionsText = (options: SessionOptions): string =>
  Buffer.from(JSON.stringify(options)).toString("base64url");

const longestOptions = 2048;

/** Undefined where the text is none that `optionsText` has written. */
export function findOptions(text: string): SessionOptions | undefined {
  if (text === "") return {};
  if (text.length > longestOptions) return undefined;
  try {
    const value: unknown = JSON.parse(Buffer.from(text, "base64url").toString());
    return findOptionsIn(value);
  } catch {
    return undefined;
  }
}
