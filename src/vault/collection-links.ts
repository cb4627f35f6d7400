import { randomBytes } from "node:crypto";
import { findProjectId, type ProjectId, type VaultId } from "../base/ids.js";
import { type DataKey, tokenDigest } from "./encryption/data-key.js";
import type { CollectionLink, VaultItem } from "./item.js";
import type { OfferedLink } from "./vault.js";

interface LinkPlace {
  readonly project: ProjectId;
  readonly vault: VaultId;
  readonly item: Pick<VaultItem, "id">;
  readonly dataKey: DataKey;
}

const nonceBytes = 16;

/**
 * The token of a link: its project, and 256 bits that only the vault's key tells. It is drawn anew whenever
 * the link is shown, so that Redis has its digest only.
 */
const tokenOf = (
  { project, vault, item, dataKey }: LinkPlace,
  { version, nonce }: Pick<CollectionLink, "version" | "nonce">,
): string =>
  `${project}.${dataKey.draw("collection link", JSON.stringify([vault, item.id, version, nonce]))}`;

export function offerLink(place: LinkPlace, version: number): OfferedLink {
  const nonce = randomBytes(nonceBytes).toString("base64url");
  return { nonce, digest: tokenDigest(tokenOf(place, { version, nonce })) };
}

/** The token stands in the fragment, which no browser sends anywhere. */
export const urlOfLink = (formUrl: string, place: LinkPlace, link: CollectionLink): string =>
  `${formUrl}/#token=${tokenOf(place, link)}`;

/** Gives the project whose link a token is of, and what it is known by. */
export function parseToken(
  token: string,
): { readonly project: ProjectId; readonly digest: string } | undefined {
  const [, project = ""] = /^([0-9a-z]{1,12})\.[\w-]{43}$/.exec(token) ?? [];
  const id = findProjectId(project);
  return id && { project: id, digest: tokenDigest(token) };
}
