import { type Static, Type } from "typebox";
import { readonlyList } from "../base/parser.js";

/** Where the custom resource is in the API of Kubernetes (k8s/base/crd.yaml). */
export const browserPools = {
  group: "remuda.dev",
  version: "v1alpha1",
  plural: "browserpools",
  kind: "BrowserPool",
} as const;

/** Whether a resource may be called so: names of pools may have more. */
export const isResourceName = (name: string): boolean => /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(name);

/** Keeps a resource until its pool is gone. */
export const finalizer = "remuda.dev/pool";
/** Set to `true` on a resource, a deletion ends the leases of its pool instead of waiting for them. */
export const forceAnnotation = "remuda.dev/force-delete";

/** As Kubernetes has it: `status` is a word, not a boolean. */
export const Condition = Type.Object({
  type: Type.String(),
  status: Type.Enum(["True", "False", "Unknown"]),
  reason: Type.String(),
  message: Type.String(),
  lastTransitionTime: Type.String(),
  observedGeneration: Type.Optional(Type.Integer()),
});
export type Condition = Readonly<Static<typeof Condition>>;

const Count = Type.Optional(Type.Integer());
export const PoolStatus = Type.Object({
  observedGeneration: Count,
  /** The generation whose configuration the pool has. */
  appliedGeneration: Count,
  /** Stands for what the pool had then in the fields that the resource names. */
  appliedDigest: Type.Optional(Type.String()),
  poolId: Type.Optional(Type.String()),
  replicas: Count,
  idle: Count,
  leased: Count,
  launching: Count,
  waiting: Count,
  selector: Type.Optional(Type.String()),
  conditions: Type.Optional(readonlyList(Condition)),
});
export type PoolStatus = Readonly<Static<typeof PoolStatus>>;

export const BrowserPool = Type.Object({
  metadata: Type.Object({
    name: Type.String(),
    uid: Type.String(),
    generation: Type.Integer(),
    resourceVersion: Type.String(),
    deletionTimestamp: Type.Optional(Type.String()),
    finalizers: Type.Optional(readonlyList(Type.String())),
    annotations: Type.Optional(Type.Record(Type.String(), Type.String())),
  }),
  spec: Type.Object({
    replicas: Type.Integer(),
    /** The body of POST /browser_pools without its name and size. */
    pool: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  }),
  status: Type.Optional(PoolStatus),
});
export type BrowserPool = Readonly<Static<typeof BrowserPool>>;

/** What a watch tells of a resource. */
export type SeenMetadata = Pick<BrowserPool["metadata"], "name"> & Partial<BrowserPool["metadata"]>;

/**
 * Two readings of a resource with the same stamp ask for the same. The status is not in it, which operators
 * write themselves; the annotation is, since it raises no generation.
 */
export const stampOf = (seen: SeenMetadata): string => {
  const { uid, generation, deletionTimestamp, finalizers, annotations } = seen;
  return JSON.stringify([uid, generation, deletionTimestamp, finalizers, annotations?.[forceAnnotation]]);
};
