import { timestampOf } from "../../base/clock.js";
import { refusal, RemudaError } from "../../base/errors.js";
import type { LoadedNode, NodeOperations } from "../../pool/node-operations.js";
import type { ReadScaling, Scaling } from "../../pool/scaling.js";
import { pageOf } from "../../spec/paging.js";
import type { Principal } from "../../access/principal.js";
import type { App } from "../bare-app.js";
import { recordedFirst } from "../audit.js";
import { principalOf } from "../admission/caller.js";
import { sendDone, sendRefusal } from "../errors.js";
import { pagingOf } from "../query.js";
import { operations } from "../schemas/operations.js";
import type { ListedNode } from "../schemas/listed-node.js";
import type { ScalingReply } from "../schemas/scaling-replies.js";
import { NodeDrain, NodeQuery, NodeRefParams } from "../schemas/requests.js";
import { pagingHeaders } from "../views/views.js";

interface Deps {
  readonly nodes: NodeOperations;
}

/** Autoscalers kill 600 s after they have told a machine to go (docs/deployment.md#draining-a-node). */
const usualDrainSeconds = 540;

/** docs/deployment.md#draining-a-node. */
export function addNodes(app: App, { nodes }: Deps): void {
  app.get(
    "/nodes",
    { schema: { ...operations.listNodes, querystring: NodeQuery } },
    async (request, reply) => {
      checkReachOfNodes(principalOf(request));
      const asked = pagingOf(request.query);
      const page = pageOf(await nodes.all(), asked);
      return reply.headers(pagingHeaders(page, asked)).send(page.items.map(nodeView));
    },
  );

  const path = "/nodes/:id/drain";
  app.post(
    path,
    { ...recordedFirst, schema: { ...operations.drainNode, params: NodeRefParams, body: NodeDrain } },
    async (request, reply) => {
      checkReachOfNodes(principalOf(request));
      const { limit_seconds: seconds = usualDrainSeconds } = request.body;
      const got = await nodes.drain(request.params.id, seconds * 1000);
      return got.kind === "refused" ? sendRefusal(reply, got) : reply.send(nodeView(got.value));
    },
  );

  app.delete(
    path,
    { ...recordedFirst, schema: { ...operations.endNodeDrain, params: NodeRefParams } },
    async (request, reply) => {
      checkReachOfNodes(principalOf(request));
      return sendDone(reply, await nodes.endDrain(request.params.id));
    },
  );
}

function checkReachOfNodes({ credentialScope }: Principal): void {
  if (credentialScope !== null)
    throw new RemudaError("insufficient_scope", { message: "Nodes are the whole organization's" });
}

const stateOf = ({ isDraining, isLate }: LoadedNode): ListedNode["state"] => {
  if (isDraining) return "draining";
  return isLate ? "late" : "ready";
};

const nodeView = (node: LoadedNode): ListedNode => ({
  id: node.id,
  state: stateOf(node),
  ...(node.drainsUntil !== undefined && { drains_until: timestampOf(node.drainsUntil) }),
  browsers: node.browsers,
  ...(node.maxBrowsers !== Number.MAX_SAFE_INTEGER && { max_browsers: node.maxBrowsers }),
  memory_bytes: node.memoryBytes,
  engines: [...node.engines],
  ...(node.zone !== undefined && { zone: node.zone }),
  labels: node.labels ?? {},
  ...(node.obstacle !== undefined && { obstacle: node.obstacle }),
  ...(node.restored && { restored: { ...node.restored, at: timestampOf(node.restored.at) } }),
  ...(node.failing && { last_error: node.failing.error }),
});

const notOfAll = refusal("insufficient_scope", {
  message: "Scaling is for API keys of the whole organization",
});

/** For whoever adds and takes away nodes (docs/deployment.md#scaling). */
export function addScaling(app: App, { readScaling }: { readonly readScaling: ReadScaling }): void {
  app.get("/scaling", { schema: operations.getScaling }, async (request, reply) => {
    // It tells of every project.
    if (principalOf(request).credentialScope !== null) return sendRefusal(reply, notOfAll);
    return reply.send(scalingView(await readScaling()));
  });
}

const scalingView = (scaling: Scaling): ScalingReply => ({
  nodes: { wanted: scaling.wantedNodes, serving: scaling.serving, draining: scaling.draining },
  memory_bytes: { admitted: scaling.admittedBytes, held: scaling.heldBytes, free: scaling.freeBytes },
  browsers: {
    lacking: scaling.lacking,
    unplaceable: scaling.unplaceable,
    idle: scaling.idle,
    leased: scaling.leased,
  },
  waiting: scaling.waiting,
  by_node: scaling.nodes.map(({ id, isDraining, isServing, held, leased, outlastsDrain }) => ({
    id,
    state: isDraining ? "draining" : isServing ? "serving" : "unready",
    browsers: held.browsers,
    leased,
    outlasts_drain: outlastsDrain,
  })),
});
