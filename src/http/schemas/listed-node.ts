import { type Static, Type } from "typebox";

/** A node as docs/deployment.md#draining-a-node has it. */
export const ListedNode = Type.Object(
  {
    id: Type.String(),
    state: Type.Enum(["ready", "late", "draining"], {
      description: "late: it has missed beats, and nothing is placed there",
    }),
    drains_until: Type.Optional(
      Type.String({ format: "date-time", description: "What is left then is ended" }),
    ),
    browsers: Type.Integer({ description: "How many have a place on it" }),
    max_browsers: Type.Optional(Type.Integer({ description: "Left out where memory alone bounds them" })),
    memory_bytes: Type.Integer(),
    engines: Type.Array(Type.String()),
    zone: Type.Optional(Type.String()),
    labels: Type.Record(Type.String(), Type.String()),
    obstacle: Type.Optional(Type.String({ description: "Why nothing is launched there" })),
    restored: Type.Optional(
      Type.Object(
        {
          at: Type.String({ format: "date-time" }),
          pools: Type.Integer(),
          browsers: Type.Integer(),
          leases: Type.Integer(),
        },
        { description: "What it has written again into a Redis that it had found empty" },
      ),
    ),
    last_error: Type.Optional(Type.String({ description: "Why its last launches have failed" })),
  },
  { $id: "Node" },
);
export type ListedNode = Static<typeof ListedNode>;
