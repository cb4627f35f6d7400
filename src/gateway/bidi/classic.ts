import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { isRecord } from "../../base/is-record.js";
import type { BrowserId } from "../../base/ids.js";
import { measure, type JsonShapeLimits } from "../cdp/json-shape.js";
import { bidiUrl } from "../paths.js";
import type { LocalBrowser } from "../ports.js";
import { readRequest } from "../../base/read-whole.js";
import { answerJson, answerWebDriverError } from "../refusals.js";
import { capabilitiesOf, matchCapabilities, optionsText } from "./capabilities.js";

interface ClassicContext {
  readonly publicUrl: string;
  readonly browser: BrowserId;
  readonly token: string;
  readonly version: LocalBrowser["chromium"]["version"];
  /** The browser's pages, the first of which counts as the current window. */
  windows(): Promise<readonly string[]>;
  /** Ends the clients that a session has by BiDi. */
  endSession(session: string): void;
}

const longestBody = 1024 * 1024;
const shapeLimits: JsonShapeLimits = { depth: 20, values: 10_000 };

/** What is answered of a session, beside its end. */
const windowCommand = /^\/session\/[^/]+(\/window(?:\/handles)?)$/;

/**
 * The HTTP of WebDriver by which Selenium and WebdriverIO learn the address of a BiDi socket: a session is
 * made and ended, and WebdriverIO asks for the current window first. `command` is what stands behind
 * `/webdriver`.
 */
export async function answerClassic(
  command: string,
  { request, response }: { request: IncomingMessage; response: ServerResponse },
  context: ClassicContext,
): Promise<void> {
  const { method } = request;
  const [, ofSession = command] = windowCommand.exec(command) ?? [];
  switch (`${method} ${ofSession}`) {
    case "GET /status":
      return answerJson(response, { value: { ready: true, message: "" } });
    case "POST /session":
      return await makeSession(request, response, context);
    case "GET /window":
      return answerJson(response, { value: (await context.windows())[0] ?? null });
    case "GET /window/handles":
      return answerJson(response, { value: await context.windows() });
  }
  const [, session] = /^\/session\/([^/]+)$/.exec(command) ?? [];
  if (method !== "DELETE" || session === undefined)
    return answerWebDriverError(response, 404, {
      error: "unknown command",
      message: `${method} ${command} is not carried here: drive the browser by WebDriver BiDi`,
    });
  context.endSession(session);
  answerJson(response, { value: null });
}

async function makeSession(
  request: IncomingMessage,
  response: ServerResponse,
  { version, ...context }: ClassicContext,
): Promise<void> {
  const body = parse((await readRequest(request, longestBody))?.toString());
  if (!body)
    return answerWebDriverError(response, 400, {
      error: "invalid argument",
      message: "The body is no JSON object",
    });
  const matched = matchCapabilities(body["capabilities"], version.product);
  if (matched.kind === "refused")
    return answerWebDriverError(response, matched.error === "invalid argument" ? 400 : 500, matched);
  const { options } = matched;
  const session = { id: randomUUID(), options: optionsText(options) };
  const facts = {
    ...version,
    id: session.id,
    webSocketUrl: bidiUrl(context.publicUrl, { ...context, session }),
  };
  answerJson(response, { value: { sessionId: session.id, capabilities: capabilitiesOf(options, facts) } });
}

function parse(text: string | undefined): Record<string, unknown> | undefined {
  if (text === undefined || typeof measure(Buffer.from(text), shapeLimits) === "string") return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
