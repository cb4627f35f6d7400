import type { ReadScaling, Scaling } from "../../pool/scaling.js";
import { refusal } from "../../base/errors.js";
import type { App } from "../bare-app.js";
import { principalOf } from "../admission/caller.js";
import { sendRefusal } from "../errors.js";
import { operations } from "../schemas/operations.js";
import type { ScalingReply } from "../schemas/scaling-replies.js";

const notOfAll = refusal("insufficient_scope", {
  message: "Scaling is for API keys of the whole organization",
});

/** For whoever adds and takes away nodes (docs/deployment.md#scaling). */
export function addScaling(app: App, { readScaling }: { readonly readScaling: ReadScaling }): void {
  app.get("/scaling", { schema: operations.getScaling }, async (request, reply) => {
    // It tells of every project.
    if (principalOf(request).credentialScope !== null) return sendRefusal(reply, notOfAll);
    return reply.send(view(await readScaling()));
  });
}

const view = (scaling: Scaling): ScalingReply => ({
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
