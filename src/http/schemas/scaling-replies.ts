import { type Static, Type } from "typebox";

const Count = Type.Integer({ minimum: 0 });

/** When to scale nodes, and by how much (docs/deployment.md#scaling). */
export const ScalingReply = Type.Object(
  {
    nodes: Type.Object({ wanted: Count, serving: Count, draining: Count }),
    memory_bytes: Type.Object({ admitted: Count, held: Count, free: Count }),
    browsers: Type.Object({ lacking: Count, unplaceable: Count, idle: Count, leased: Count }),
    waiting: Count,
    by_node: Type.Array(
      Type.Object({
        id: Type.String(),
        state: Type.Enum(["serving", "draining", "unready"]),
        browsers: Count,
        leased: Count,
        outlasts_drain: Type.Boolean({
          description:
            "Something is lent there whose timeout is longer than the node's drain, or whose profile is saved at its end",
        }),
      }),
    ),
  },
  { $id: "Scaling" },
);
export type ScalingReply = Static<typeof ScalingReply>;
