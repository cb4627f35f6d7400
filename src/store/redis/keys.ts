import type {
  ExtensionId,
  LeaseId,
  Partition,
  NodeId,
  OtlpDestinationId,
  ProfileId,
  ProjectId,
  ProxyId,
  VaultId,
  VaultItemId,
} from "../../base/ids.js";

/**
 * The parts of a partition: all share its hash tag, so one script may touch them all
 * (docs/deployment.md#redis).
 */
export const partitionParts = [
  "pool",
  "templates",
  "browsers",
  "launching",
  "idle",
  "leased",
  "resetting",
  "retiring",
  "discarded",
  "leases",
  "waitQueue",
  "waiterRecords",
  "provisional",
  "controls",
  "replaceable",
  "pendingTombstones",
  "endedLeases",
  "events",
  "nodeIndex",
  "generationIndex",
  "ageIndex",
  "leaseCountIndex",
  "nodeStamps",
] as const;
export type PartitionPart = (typeof partitionParts)[number];

const root = "remuda";

export const partitionKey = (project: ProjectId, partition: Partition, part: PartitionPart): string =>
  `${root}:${project}:{${partition}}:${part}`;
export type PartitionKeys = Readonly<Record<PartitionPart, string>>;
export const partitionKeys = (project: ProjectId, partition: Partition): PartitionKeys =>
  Object.fromEntries(
    partitionParts.map((part) => [part, partitionKey(project, partition, part)]),
  ) as PartitionKeys;
/** The first answer to a request: kept a few seconds, for a command that was sent again. */
export const answerKey = (
  project: ProjectId,
  partition: Partition,
  asked: { script: string; request: string },
): string => `${root}:${project}:{${partition}}:answer:${asked.script}:${asked.request}`;
/** What an `Idempotency-Key` was given; `digest` never is the key itself. */
export const idempotencyKey = (project: ProjectId, partition: Partition, digest: string): string =>
  `${root}:${project}:{${partition}}:idempotency:${digest}`;

/** The events of one lease, and what is known of them as a whole: kept for a time after the last of them. */
export type StreamPart = "streamEvents" | "streamState";
export const streamKey = (
  project: ProjectId,
  partition: Partition,
  stream: { part: StreamPart; lease: LeaseId },
): string => `${root}:${project}:{${partition}}:${stream.part}:${stream.lease}`;

/** The last batch that was taken of one writer. */
export const streamWriterKey = (project: ProjectId, partition: Partition, writer: string): string =>
  `${root}:${project}:{${partition}}:streamWriter:${writer}`;

/** Which leases have stored events, in the order in which they began; the newest of each browser. */
export type TelemetryPart = "telemetryStreams" | "telemetryLatest";
export const telemetryKey = (part: TelemetryPart): string => `${root}:{telemetry}:${part}`;

export const projectParts = [
  "pools",
  "poolOrder",
  "names",
  "tombstones",
  "tombstoneOrder",
  "tombstoneNames",
  "flightRecordings",
  "flightRecordingOrder",
  "proxies",
  "proxyNames",
  "profiles",
  "profileNames",
  "extensions",
  "extensionNames",
  "otlpDestinations",
  "otlpDestinationNames",
  "vaults",
  "vaultNames",
  "vaultBytes",
  "vaultRemovals",
] as const;
export type ProjectPart = (typeof projectParts)[number];
export const projectKey = (project: ProjectId, part: ProjectPart): string =>
  `${root}:{project-${project}}:${part}`;
export const proxyKey = (project: ProjectId, id: ProxyId): string =>
  `${root}:{project-${project}}:proxy:${id}`;
export const profileKey = (project: ProjectId, id: ProfileId): string =>
  `${root}:{project-${project}}:profile:${id}`;
export const extensionKey = (project: ProjectId, id: ExtensionId): string =>
  `${root}:{project-${project}}:extension:${id}`;
export const otlpDestinationKey = (project: ProjectId, id: OtlpDestinationId): string =>
  `${root}:{project-${project}}:otlpDestination:${id}`;
/** A vault with the keys that open it, its items by their keys, their values and links by their ids. */
export type VaultPart = "vault" | "vaultItems" | "vaultValues" | "vaultLinks";
export const vaultKey = (project: ProjectId, id: VaultId, part: VaultPart): string =>
  `${root}:{project-${project}}:${part}:${id}`;
export const vaultEventsKey = (project: ProjectId, item: VaultItemId): string =>
  `${root}:{project-${project}}:vaultEvents:${item}`;
/** What is known of a link to a form by the digest of its token: gone some time after the link. */
export const collectionLinkKey = (project: ProjectId, digest: string): string =>
  `${root}:{project-${project}}:collectionLink:${digest}`;
export const projectIdempotencyKey = (project: ProjectId, digest: string): string =>
  `${root}:{project-${project}}:idempotency:${digest}`;

/**
 * API keys and projects, in a slot of their own: one script admits a request. `keyDigests` leads from a
 * key's digest to its id and the instant at which it expires. `keyEnds` has when keys end or have ended,
 * until that was looked after. `keyOrder`: the keys of everybody and of each project, in the order in which
 * they were made.
 */
export type AccessPart =
  | "keyDigests"
  | "apiKeys"
  | "livingKeys"
  | "deletedKeys"
  | "keyOrder"
  | "keyUses"
  | "keyEnds"
  | "projects"
  | "projectNames"
  | "activeProjects"
  | "deletedProjects";
export const accessKey = (part: AccessPart): string => `${root}:{access}:${part}`;
/** How many requests of one caller may come still: of an API key by its digest; gone when it is full. */
export const callerRateKey = (caller: string): string => `${root}:{access}:rate:${caller}`;
/** What a caller's deletion by name meant. */
export const removalKey = (about: string): string => `${root}:{access}:removal:${about}`;
export const accessIdempotencyKey = (digest: string): string => `${root}:{access}:idempotency:${digest}`;

/**
 * What all projects share, in a slot of its own: who holds how many browsers, the sums of that, and what the
 * API has set as limits.
 */
export type OrganizationPart = "reservations" | "usage" | "limits";
/** How many requests of one kind may come still; gone when it is full. */
export const rateKey = (bucket: string): string => `${root}:{rate-${bucket}}:rate`;
export const organizationKey = (part: OrganizationPart): string => `${root}:{organization}:${part}`;

/**
 * What stands in a node's own slot. `room`: which browsers have a place on it, a map of browser to bytes and
 * deadline. Of one that fails launches: `rest` while it is given none, `trial` while the one is under way
 * that is to show whether it launches again.
 */
export const nodeParts = ["room", "rest", "trial"] as const;
export type NodePart = (typeof nodeParts)[number];
export const nodeKey = (node: NodeId, part: NodePart): string => `${root}:{node-${node}}:${part}`;
/**
 * What spans nodes: when each has beaten, what it is, how often that has changed, those that are lost and
 * not cleared yet, until when those drain that were asked to, the present epoch, and the name of the dataset.
 */
export type NodesPart = "beats" | "facts" | "version" | "lost" | "drains" | "epoch" | "dataset";
export const nodesKey = (part: NodesPart): string => `${root}:{nodes}:${part}`;
/** The number of the layout of all these keys. */
export const schemaKey = `${root}:schema`;
/** Written by whoever waits until what was written before it is on disk. */
export const appendedKey = `${root}:appended`;
/** When each schedule last ran: a map of schedule to instant. */
export const ticksKey = `${root}:{nodes}:ticks`;
/** When each control that runs ticks has last said so. */
export const tickControlsKey = `${root}:{nodes}:tickControls`;

/**
 * The audit log: its newest entries, their bytes and where the manifest ends, and the manifest of the
 * segments that hold the others. `auditIntents`: changes that are being made. `destinations`: to whom it is
 * delivered.
 */
export type AuditPart = "auditStream" | "auditState" | "auditSegments" | "auditIntents" | "destinations";
export const auditKey = (part: AuditPart): string => `${root}:{audit}:${part}`;
/** The last batch that was taken of one writer. */
export const auditWriterKey = (writer: string): string => `${root}:{audit}:writer:${writer}`;

/** BullMQ builds its keys under this; the tag keeps a queue in one slot. */
export const queuePrefix = `${root}:{queue}`;

export const nodeChannel = (node: NodeId): string => `${root}:node:${node}`;
export const controlChannel = (control: string): string => `${root}:control:${control}`;
