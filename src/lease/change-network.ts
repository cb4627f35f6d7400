import { refusal, type Refusal } from "../base/errors.js";
import { newRequestId, partitionOf } from "../base/ids.js";
import type { LeasedBrowser } from "../pool/browser.js";
import type { NodeReply, NodeRequest } from "../pool/ports/messages.js";
import type { NodeReports } from "../pool/ports/node-reports.js";
import type { LeaseChange, PoolStore } from "../pool/ports/pool-store.js";
import type { ProxyChoice, SessionPatch } from "../spec/bodies.js";
import { normaliseNetwork } from "../spec/field-checks.js";
import { withNetworkInForce } from "./refused-change.js";

interface ChangeNetworkPorts {
  readonly poolStore: PoolStore;
  readonly reports: Pick<NodeReports, "applied">;
  askNode(browser: LeasedBrowser, what: NodeRequest): Promise<NodeReply>;
}

/**
 * Writes into the record first what is asked for, so that a node which the question does not reach finds it
 * there. The network counts as in force only when the node says so.
 */
export async function changeNetwork(
  ports: ChangeNetworkPorts,
  browser: LeasedBrowser,
  network: LeaseChange["network"],
): Promise<Refusal | undefined> {
  if (!network) return undefined;
  const reply = await ports.poolStore.touch(partitionOf(browser.id), {
    browser: browser.id,
    lease: browser.lease.id,
    change: { set: {}, clear: [], touched: true, network },
    request: newRequestId(),
  });
  if (reply.kind !== "touched")
    return refusal(reply.kind === "superseded" ? "lease_superseded" : "browser_not_found");
  return await askNetwork(ports, reply.browser);
}

export async function askNetwork(
  ports: ChangeNetworkPorts,
  browser: LeasedBrowser,
): Promise<Refusal | undefined> {
  const { id, lease } = browser;
  const change = lease.networkWanted;
  if (!change) return refusal("conflict");
  const { revision } = change;
  const answer = await ports.askNode(browser, { kind: "network", revision, change });
  if (answer.kind === "done") {
    // A node that Redis does not reach cannot say so in the record.
    return await withNetworkInForce(async () => {
      await ports.reports.applied({ browser: id, lease: lease.id, revision, outcome: "applied" });
      return undefined;
    });
  }
  if (answer.kind === "failed")
    return refusal("conflict", {
      message: "The browser's node could not put this network in force, so the network has not changed",
    });
  return refusal("node_silent", {
    retryAfterSeconds: 1,
    message:
      "The change is not in force yet: the browser's node did not answer in time, and will put it in force " +
      "when it hears of it. DELETE the session to be sure",
  });
}

/** `""` removes the proxy. */
function chosenBy(id: string | undefined): ProxyChoice | undefined {
  if (id === undefined) return undefined;
  return id === "" ? { mode: "direct" } : { id };
}

export function networkOf({ network, proxy, proxy_id }: SessionPatch): LeaseChange["network"] {
  const allowed = network?.allowed_hosts;
  const chosen = proxy ?? chosenBy(proxy_id);
  if (allowed === undefined && chosen === undefined) return undefined;
  return {
    ...(allowed === undefined
      ? {}
      : {
          allowedHosts: JSON.stringify(allowed && normaliseNetwork({ allowed_hosts: allowed }).allowed_hosts),
        }),
    ...(chosen === undefined ? {} : { proxy: JSON.stringify(chosen) }),
  };
}
