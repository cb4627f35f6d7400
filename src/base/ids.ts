import { randomFillSync } from "node:crypto";
import { Type } from "typebox";

declare const brand: unique symbol;
type Branded<Name extends string> = string & { readonly [brand]: Name };

/**
 * Everything that belongs together in Redis: one pool, or the on-demand sessions of a project. 12 lower-case
 * alphanumerics.
 */
export type Partition = Branded<"Partition">;
/** 24 lower-case alphanumerics; the first 12 are its partition. */
export type PoolId = Branded<"PoolId">;
/** The contract's `session_id`: 24 lower-case alphanumerics; the first 12 are its partition. */
export type BrowserId = Branded<"BrowserId">;
export type LeaseId = Branded<"LeaseId">;
export type NodeId = Branded<"NodeId">;
export type ControlId = Branded<"ControlId">;
/** One per HTTP request or unit of background work; a script answers a repeat of it with its first answer. */
export type RequestId = Branded<"RequestId">;
/**
 * Names one attempt at launching, resetting or retiring a browser; a job whose claim is not the record's does
 * nothing.
 */
export type ClaimId = Branded<"ClaimId">;
export type ProjectId = Branded<"ProjectId">;
/** 24 lower-case alphanumerics, like those of the other named things. */
export type ProxyId = Branded<"ProxyId">;
export type ExtensionId = Branded<"ExtensionId">;
export type ProfileId = Branded<"ProfileId">;
export type ApiKeyId = Branded<"ApiKeyId">;
/** SHA-256 of an archive's bytes, 64 lower-case hexadecimal digits: what an archive is called. */
export type Digest = Branded<"Digest">;

const alphabet = "0123456789abcdefghijklmnopqrstuvwxyz";
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

/** The one project there is until projects are built; part of every key from the start. */
export const defaultProject = "default" as ProjectId;
/** The partition of a project's on-demand sessions. */
export const onDemandPartition = "0".repeat(partitionLength) as Partition;
/** What metrics and logs call it; no pool can have this name. */
export const onDemandLabel = "(on demand)";

export const newPoolId = (): PoolId => randomText(idLength) as PoolId;
export const newBrowserId = (partition: Partition): BrowserId =>
  (partition + randomText(idLength - partitionLength)) as BrowserId;
export const newLeaseId = (): LeaseId => randomText(idLength) as LeaseId;
export const newNodeId = (): NodeId => randomText(partitionLength) as NodeId;
export const newControlId = (): ControlId => randomText(partitionLength) as ControlId;
export const newRequestId = (): RequestId => randomText(idLength) as RequestId;
export const newProxyId = (): ProxyId => randomText(idLength) as ProxyId;
export const newExtensionId = (): ExtensionId => randomText(idLength) as ExtensionId;
export const newProfileId = (): ProfileId => randomText(idLength) as ProfileId;
export const newApiKeyId = (): ApiKeyId => randomText(idLength) as ApiKeyId;

export const partitionOf = (id: PoolId | BrowserId): Partition => id.slice(0, partitionLength) as Partition;

const isId = (text: string): boolean => /^[0-9a-z]{24}$/.test(text);
export const findBrowserId = (text: string): BrowserId | undefined =>
  isId(text) ? (text as BrowserId) : undefined;
export const findPoolId = (text: string): PoolId | undefined => (isId(text) ? (text as PoolId) : undefined);
export const findProxyId = (text: string): ProxyId | undefined =>
  isId(text) ? (text as ProxyId) : undefined;
export const findExtensionId = (text: string): ExtensionId | undefined =>
  isId(text) ? (text as ExtensionId) : undefined;
export const findProfileId = (text: string): ProfileId | undefined =>
  isId(text) ? (text as ProfileId) : undefined;
export const findApiKeyId = (text: string): ApiKeyId | undefined =>
  isId(text) ? (text as ApiKeyId) : undefined;
export const findDigest = (text: string): Digest | undefined =>
  /^[0-9a-f]{64}$/.test(text) ? (text as Digest) : undefined;
export const findLeaseId = (text: string): LeaseId | undefined =>
  isId(text) ? (text as LeaseId) : undefined;
/** A node names itself by configuration or at random; the name becomes part of keys, queues and channels. */
export const findNodeId = (text: string): NodeId | undefined =>
  /^[0-9a-z-]{1,63}$/.test(text) ? (text as NodeId) : undefined;

/** Ids as schemas of records and messages name them. */
const idText = <Id extends string>(pattern: string) => Type.Unsafe<Id>(Type.String({ pattern }));
const twentyFour = "^[0-9a-z]{24}$";
export const PoolId = idText<PoolId>(twentyFour);
export const BrowserId = idText<BrowserId>(twentyFour);
export const LeaseId = idText<LeaseId>(twentyFour);
export const ProfileId = idText<ProfileId>(twentyFour);
export const ExtensionId = idText<ExtensionId>(twentyFour);
export const ApiKeyId = idText<ApiKeyId>(twentyFour);
export const NodeId = idText<NodeId>("^[0-9a-z-]{1,63}$");
export const ControlId = idText<ControlId>("^[0-9a-z]{12}$");
export const Partition = idText<Partition>("^[0-9a-z]{12}$");
export const Digest = idText<Digest>("^[0-9a-f]{64}$");
/** A caller may have named the request, and a claim is what the script made of it. */
export const RequestId = idText<RequestId>("^.+$");
export const ClaimId = idText<ClaimId>("^.+$");
