import { accessOperations } from "./access-operations.js";
import { auditOperations } from "./audit-operations.js";
import { lendingOperations } from "./lending-operations.js";
import { describeOperations, noContent, onePage, reply } from "./operation.js";
import { registryOperations } from "./registry-operations.js";
import { telemetryOperations } from "./telemetry-operations.js";
import { vaultOperations } from "./vault-operations.js";

const health = "Health";
const nodes = "Nodes";

const status = (description: string) => reply(200, "Status", description);

/**
 * What every operation is called, answers and refuses; the key is its operationId in the OpenAPI document.
 */
export const operations = describeOperations({
  ...lendingOperations,
  ...registryOperations,
  ...accessOperations,
  ...auditOperations,
  ...telemetryOperations,
  ...vaultOperations,
  listNodes: { tag: nodes, summary: "List the nodes that live", success: onePage("Node") },
  drainNode: {
    tag: nodes,
    summary: "Lend and place nothing on a node any more, and empty it within a limit",
    takesBody: true,
    success: reply(200, "Node", "The node, which drains"),
    failures: ["audit_unavailable", "node_not_found", "conflict"],
  },
  endNodeDrain: {
    tag: nodes,
    summary: "Lend and place on a node again",
    success: noContent("It drains no more"),
    failures: ["audit_unavailable", "node_not_found", "conflict"],
  },
  getAuthContext: {
    tag: "Authentication",
    summary: "Tell who the request is from and what it may reach",
    success: [{ status: 200, description: "The request's identity", component: "AuthContext" }],
  },
  getHealth: {
    tag: health,
    summary: "Tell whether the process answers",
    isOpen: true,
    success: status("It does"),
  },
  getReadiness: {
    tag: health,
    summary: "Tell whether requests should be sent here",
    isOpen: true,
    success: status("They should"),
    failures: ["unavailable"],
  },
  getScaling: {
    tag: health,
    summary: "Tell how many nodes are wanted, how full they are, and what each has lent",
    success: reply(200, "Scaling", "The fleet as a whole"),
  },
  getMetrics: {
    tag: health,
    summary:
      "Read the metrics in Prometheus's text format; no key is needed on a loopback address by a loopback name",
    success: [{ status: 200, description: "The metrics", contentType: "text/plain" }],
  },
});
