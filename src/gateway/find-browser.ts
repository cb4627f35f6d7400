import type { IncomingMessage } from "node:http";
import type { Clock } from "../base/clock.js";
import { within } from "../base/deadline.js";
import type { BrowserId, LeaseId } from "../base/ids.js";
import type { Secret } from "../base/crypto/secret.js";
import { leaseOfToken } from "../base/crypto/lease-token.js";
import type { GatewayLimits } from "./limits.js";
import type { Path } from "./paths.js";
import type { GatewayPorts, LocalBrowser, NodeAddress } from "./ports.js";
import { goneBecause, overBecause, type GatewayRefusal } from "./refusals.js";
import { wasForwarded } from "./relay/forward.js";

export type BrowserLocation =
  | { readonly kind: "here"; readonly lease: LeaseId; readonly browser: LocalBrowser }
  | { readonly kind: "elsewhere"; readonly lease: LeaseId; readonly address: NodeAddress };

interface FindParts {
  readonly ports: Pick<GatewayPorts, "findBrowser" | "findAddress" | "findEnd">;
  readonly clock: Clock;
  readonly limits: Pick<GatewayLimits, "connectMs">;
  readonly secret: Secret;
}

/** Finds the browser of a URL whose token is good, or says why whoever has it is refused. */
export async function findBrowserOf(
  path: Path,
  request: IncomingMessage,
  parts: FindParts,
): Promise<BrowserLocation | GatewayRefusal> {
  const { ports, clock, limits, secret } = parts;
  const lease = leaseOfToken(secret, path.browser, path.token);
  if (lease === undefined) return { code: "unauthorized", message: "The token is missing or not valid" };
  if (path.wanted.kind === "unknown") return { code: "route_not_found" };
  const browser = ports.findBrowser(path.browser);
  if (browser)
    return browser.activity.isOver(lease)
      ? await whyOver(path.browser, lease, { ...parts, local: browser })
      : { kind: "here", lease, browser };
  const asking = wasForwarded(request.headers) ? Promise.resolve(undefined) : ports.findAddress(path.browser);
  const address = await within(
    clock,
    { what: "finding the browser's node", limitMs: limits.connectMs },
    asking,
  );
  return address ? { kind: "elsewhere", lease, address } : await whyOver(path.browser, lease, parts);
}

async function whyOver(
  browser: BrowserId,
  lease: LeaseId,
  { ports, clock, limits, local }: FindParts & { readonly local?: LocalBrowser },
): Promise<GatewayRefusal> {
  if (local?.activity.whyOver(lease) !== undefined) return overBecause(local, lease);
  const asking = ports.findEnd(browser, lease);
  return goneBecause(
    (await within(clock, { what: "finding why a lease is over", limitMs: limits.connectMs }, asking)) ??
      "the lease is over",
  );
}
