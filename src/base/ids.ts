import { randomFillSync } from "node:crypto";
import { Type } from "typebox";

declare const brand: unique symbol;
type Branded<Name extends string> = string & { readonly [brand]: Name };

/**
 * Everything that belongs together in Redis: one pool, or the on-demand sessions of a project. 12 lower-case
 * alphanumerics, after those of its project.
 */
export type Partition = Branded<"Partition">;
/** 24 lower-case alphanumerics after those of its project; all but the last 12 are its partition. */
export type PoolId = Branded<"PoolId">;
/** The contract's `session_id`, which is made like the id of a pool. */
export type BrowserId = Branded<"BrowserId">;
export type LeaseId = Branded<"LeaseId">;
export type NodeId = Branded<"NodeId">;
export type ControlId = Branded<"ControlId">;
/** One per HTTP request or unit of background work; a script answers a repeat of it with its first answer. */
export type RequestId = Branded<"RequestId">;
/** One client's connection to a browser, as events name it. */
export type ConnectionId = Branded<"ConnectionId">;
/**
 * Names one attempt at launching, resetting or retiring a browser; a job whose claim is not the record's does
 * nothing.
 */
export type ClaimId = Branded<"ClaimId">;
/** `default`, or 12 lower-case alphanumerics. */
export type ProjectId = Branded<"ProjectId">;
/** 24 lower-case alphanumerics after those of its project, like the ids of the other named things. */
export type ProxyId = Branded<"ProxyId">;
export type ExtensionId = Branded<"ExtensionId">;
export type ProfileId = Branded<"ProfileId">;
export type ApiKeyId = Branded<"ApiKeyId">;
export type DestinationId = Branded<"DestinationId">;
/** Names a collector that telemetry is sent to; a `DestinationId` names a bucket that has the audit log. */
export type OtlpDestinationId = Branded<"OtlpDestinationId">;
/** 24 lower-case alphanumerics after those of its project. */
export type VaultId = Branded<"VaultId">;
export type VaultItemId = Branded<"VaultItemId">;
/** SHA-256 of an archive's bytes, 64 lower-case hexadecimal digits: what an archive is called. */
export type Digest = Branded<"Digest">;

const alphabet = "0123456789abcdefghijklmnopqrstuvwxyz";
const projectLength = 12;
const partitionLength = 12;
const idLength = 24;

// Drawn in advance: `randomInt` for each character takes three times as long.
const drawn = Buffer.alloc(4096);
let used = drawn.length;
function randomByte(): number {
  if (used === drawn.length) {
    randomFillSync(drawn);
    used = 0;
  }
  used += 1;
  return drawn[used - 1] ?? 0;
}

/** Bytes above the last whole multiple would make the first characters likelier. */
const fairBytes = 256 - (256 % alphabet.length);
const randomText = (length: number): string => {
  let text = "";
  while (text.length < length) {
    const byte = randomByte();
    if (byte < fairBytes) text += alphabet[byte % alphabet.length];
  }
  return text;
};

/** The project of requests that name none; it is always there. */
export const defaultProject = "default" as ProjectId;
/**
 * What the ids of everything in a project begin with, so that an id says where it lives: nothing in the
 * default project, the project's own id in every other.
 */
const idPrefixOf = (project: ProjectId): string => (project.length === projectLength ? project : "");
/** The partition of a project's on-demand sessions. */
export const onDemandIn = (project: ProjectId): Partition =>
  (idPrefixOf(project) + "0".repeat(partitionLength)) as Partition;
/** The on-demand sessions of the default project. */
export const onDemandPartition = onDemandIn(defaultProject);
export const isOnDemand = (partition: Partition): boolean => partition.endsWith(onDemandPartition);
/** What metrics and logs call it; no pool can have this name. */
export const onDemandLabel = "(on demand)";

export const newProjectId = (): ProjectId => randomText(projectLength) as ProjectId;
export const newPoolId = (project = defaultProject): PoolId => newIdIn(project) as PoolId;
export const newBrowserId = (partition: Partition): BrowserId =>
  (partition + randomText(idLength - partitionLength)) as BrowserId;
export const newLeaseId = (): LeaseId => randomText(idLength) as LeaseId;
export const newNodeId = (): NodeId => randomText(partitionLength) as NodeId;
export const newControlId = (): ControlId => randomText(partitionLength) as ControlId;
export const newRequestId = (): RequestId => randomText(idLength) as RequestId;
export const newConnectionId = (): ConnectionId => randomText(idLength) as ConnectionId;
export const newProxyId = (project = defaultProject): ProxyId => newIdIn(project) as ProxyId;
export const newExtensionId = (project = defaultProject): ExtensionId => newIdIn(project) as ExtensionId;
export const newProfileId = (project = defaultProject): ProfileId => newIdIn(project) as ProfileId;
export const newOtlpDestinationId = (project = defaultProject): OtlpDestinationId =>
  newIdIn(project) as OtlpDestinationId;
export const newVaultId = (project = defaultProject): VaultId => newIdIn(project) as VaultId;
export const newVaultItemId = (project = defaultProject): VaultItemId => newIdIn(project) as VaultItemId;
const newIdIn = (project: ProjectId): string => idPrefixOf(project) + randomText(idLength);
export const newApiKeyId = (): ApiKeyId => randomText(idLength) as ApiKeyId;
export const newDestinationId = (): DestinationId => randomText(idLength) as DestinationId;

/**
 * The id without its own last part. It is cut from the end, since ids of some projects are longer in front.
 */
export const partitionOf = (id: PoolId | BrowserId): Partition =>
  id.slice(0, partitionLength - idLength) as Partition;

type IdInProject = PoolId | BrowserId | ProxyId | ExtensionId | ProfileId | OtlpDestinationId;
/** The project that an id names; undefined where it names none, as in the default project. */
const projectNamedBy = (id: IdInProject): ProjectId | undefined =>
  id.length > idLength ? (id.slice(0, projectLength) as ProjectId) : undefined;
export const projectNamedByPartition = (partition: Partition): ProjectId | undefined =>
  partition.length > partitionLength ? (partition.slice(0, projectLength) as ProjectId) : undefined;
export const projectOf = (id: IdInProject): ProjectId => projectNamedBy(id) ?? defaultProject;

const isId = (text: string): boolean => /^(?:[0-9a-z]{12})?[0-9a-z]{24}$/.test(text);
/** Whether a text is the id of something that belongs to no project. */
const isPlainId = (text: string): boolean => /^[0-9a-z]{24}$/.test(text);
const isIdIn = (project: ProjectId, text: string): boolean => {
  const prefix = idPrefixOf(project);
  return isId(text) && text.length === prefix.length + idLength && text.startsWith(prefix);
};
export const findBrowserId = (text: string): BrowserId | undefined =>
  isId(text) ? (text as BrowserId) : undefined;
export const findPoolId = (text: string): PoolId | undefined => (isId(text) ? (text as PoolId) : undefined);
/** What a caller names is looked for in the caller's project only: any other's id is no id at all. */
export const findBrowserIdIn = (project: ProjectId, text: string): BrowserId | undefined =>
  isIdIn(project, text) ? (text as BrowserId) : undefined;
export const findProjectId = (text: string): ProjectId | undefined =>
  text === defaultProject || /^[0-9a-z]{12}$/.test(text) ? (text as ProjectId) : undefined;
export const findPoolIdIn = (project: ProjectId, text: string): PoolId | undefined =>
  isIdIn(project, text) ? (text as PoolId) : undefined;
export const findProxyId = (text: string): ProxyId | undefined =>
  isId(text) ? (text as ProxyId) : undefined;
export const findExtensionId = (text: string): ExtensionId | undefined =>
  isId(text) ? (text as ExtensionId) : undefined;
export const findProfileId = (text: string): ProfileId | undefined =>
  isId(text) ? (text as ProfileId) : undefined;
export const findApiKeyId = (text: string): ApiKeyId | undefined =>
  isPlainId(text) ? (text as ApiKeyId) : undefined;
export const findDestinationId = (text: string): DestinationId | undefined =>
  isPlainId(text) ? (text as DestinationId) : undefined;
export const findOtlpDestinationId = (text: string): OtlpDestinationId | undefined =>
  isId(text) ? (text as OtlpDestinationId) : undefined;
export const findVaultId = (text: string): VaultId | undefined =>
  isId(text) ? (text as VaultId) : undefined;
export const findDigest = (text: string): Digest | undefined =>
  /^[0-9a-f]{64}$/.test(text) ? (text as Digest) : undefined;
export const findLeaseId = (text: string): LeaseId | undefined =>
  isPlainId(text) ? (text as LeaseId) : undefined;
export const findRequestId = (text: string): RequestId | undefined =>
  isPlainId(text) ? (text as RequestId) : undefined;
/** A node names itself by configuration or at random; the name becomes part of keys, queues and channels. */
export const findNodeId = (text: string): NodeId | undefined =>
  /^[0-9a-z-]{1,63}$/.test(text) ? (text as NodeId) : undefined;

/** Ids as schemas of records and messages name them. */
const idText = <Id extends string>(pattern: string) => Type.Unsafe<Id>(Type.String({ pattern }));
const inProject = "^(?:[0-9a-z]{12})?[0-9a-z]{24}$";
const inNone = "^[0-9a-z]{24}$";
export const PoolId = idText<PoolId>(inProject);
export const BrowserId = idText<BrowserId>(inProject);
export const LeaseId = idText<LeaseId>(inNone);
export const ProfileId = idText<ProfileId>(inProject);
export const ExtensionId = idText<ExtensionId>(inProject);
export const ApiKeyId = idText<ApiKeyId>(inNone);
export const DestinationId = idText<DestinationId>(inNone);
export const VaultId = idText<VaultId>(inProject);
export const VaultItemId = idText<VaultItemId>(inProject);
export const NodeId = idText<NodeId>("^[0-9a-z-]{1,63}$");
export const ControlId = idText<ControlId>("^[0-9a-z]{12}$");
const partitionPattern = "^(?:[0-9a-z]{12}){1,2}$";
export const Partition = idText<Partition>(partitionPattern);
export const findPartition = (text: string): Partition | undefined =>
  new RegExp(partitionPattern).test(text) ? (text as Partition) : undefined;
export const ProjectId = idText<ProjectId>("^(?:default|[0-9a-z]{12})$");
export const Digest = idText<Digest>("^[0-9a-f]{64}$");
/** A caller may have named the request, and a claim is what the script made of it. */
export const RequestId = idText<RequestId>("^.+$");
export const ClaimId = idText<ClaimId>("^.+$");
