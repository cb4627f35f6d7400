import type { Readable } from "node:stream";
import { type Done, refusal, type Refusal } from "../base/errors.js";
import { findSession } from "../pool/lookup.js";
import type { Caller } from "../spec/caller.js";
import type { PoolStore } from "../pool/ports/pool-store.js";
import type { ProjectStore } from "../pool/ports/project-store.js";
import type { CurlBody } from "../spec/curl.js";
import type { AskCurl } from "../pool/ports/messages.js";

interface CurlPorts {
  readonly poolStore: PoolStore;
  readonly projects: ProjectStore;
  readonly askCurl: AskCurl;
}

/**
 * POST /browsers/{id_or_name}/curl: a request through the browser's way out, under its rules and into its
 * counts.
 */
export const makeCurl =
  (ports: CurlPorts) =>
  async (ref: string, body: CurlBody, caller: Caller): Promise<Done<Readable> | Refusal> => {
    const found = await findSession(ports, ref);
    if (!found) return refusal("browser_not_found");
    if (caller.lease && caller.lease !== found.browser.lease.id) return refusal("lease_superseded");
    return await ports.askCurl(found.browser, body, caller);
  };
