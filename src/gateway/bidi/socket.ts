import { randomUUID } from "node:crypto";
import { findOptions, type SessionOptions } from "./capabilities.js";
import { type BidiSession, bidiUrl, findSessionPath, type Path } from "../paths.js";
import type { GatewayRefusal } from "../refusals.js";

/** The session of a BiDi socket that is to be opened. */
export interface WantedSession {
  readonly id: string;
  readonly webSocketUrl: string;
  /** Set where the session was made by HTTP. */
  readonly options?: SessionOptions;
}

/** What a socket at a path under `/webdriver` is for. */
export function wantedSession(
  { browser, token }: Path,
  wanted: Extract<Path["wanted"], { kind: "webdriver" }>,
  publicUrl: string,
): WantedSession | GatewayRefusal {
  const place = findSessionPath(wanted.command);
  if (!place) return { code: "route_not_found" };
  if (place.session === undefined) {
    const id = randomUUID();
    return { id, webSocketUrl: bidiUrl(publicUrl, { browser, token, session: { id } }) };
  }
  const options = findOptions(wanted.options);
  if (!options) return { code: "bad_request", message: "The options of the session's URL cannot be read" };
  const session: BidiSession = { id: place.session, options: wanted.options };
  return { id: session.id, webSocketUrl: bidiUrl(publicUrl, { browser, token, session }), options };
}
