import { type Static, Type } from "typebox";
import { type Done, type Refusal, refusal } from "../base/errors.js";
import type { Browser } from "../pool/browser.js";
import { findSession } from "../pool/lookup.js";
import type { Caller } from "../pool/operations.js";
import type { Homes, Projects } from "../pool/ports/pool-store.js";

/** POST /browsers/{id}/curl (wire-facts.md 2.2). Here, since both the API and the browser's node take it. */
export const CurlBody = Type.Object(
  {
    url: Type.String({ minLength: 1, maxLength: 8192 }),
    method: Type.Optional(Type.String({ pattern: "^[A-Za-z]{1,20}$", default: "GET", description: "Any but CONNECT and TRACE" })),
    headers: Type.Optional(
      Type.Record(
        Type.String(), Type.String({ maxLength: 65_536, pattern: "^[\\t\\x20-\\x7e\\x80-\\xff]*$" }),
        { maxProperties: 100, propertyNames: { pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$" } },
      ),
    ),
    body: Type.Optional(Type.String({ maxLength: 1024 * 1024 })),
    timeout_ms: Type.Optional(Type.Integer({ minimum: 1000, maximum: 60_000, default: 30_000 })),
    response_encoding: Type.Optional(Type.Enum(["utf8", "base64"], { default: "utf8" })),
  },
  { additionalProperties: false },
);
export type CurlBody = Static<typeof CurlBody>;

/** What the destination answered; a header that came more than once has each of its values. */
export const CurlReply = Type.Object(
  {
    status: Type.Integer(),
    headers: Type.Record(Type.String(), Type.Array(Type.String())),
    body: Type.String({ description: "In the encoding that was asked for" }),
    duration_ms: Type.Integer({ minimum: 0 }),
  },
  { $id: "CurlResponse" },
);
export type CurlReply = Static<typeof CurlReply>;

/** Asks the browser's node, for the lease that the browser has now. */
export type AskCurl = (browser: Browser, body: CurlBody, gone: AbortSignal) => Promise<Done<CurlReply> | Refusal>;

interface Ports {
  readonly homes: Homes;
  readonly projects: Projects;
  readonly askCurl: AskCurl;
}

/** POST /browsers/{id_or_name}/curl: a request through the browser's way out, under its rules and into its counts. */
export const makeCurl = (ports: Ports) => async (ref: string, body: CurlBody, caller: Caller): Promise<Done<CurlReply> | Refusal> => {
  const found = await findSession(ports, ref);
  if (!found) return refusal("browser_not_found");
  if (caller.lease && caller.lease !== found.browser.lease?.id) return refusal("lease_superseded");
  return await ports.askCurl(found.browser, body, caller.gone);
};
