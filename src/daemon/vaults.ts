import { findBrowserIdIn, type ProjectId } from "../base/ids.js";
import type { SessionOperations } from "../pool/operations.js";
import { refuseInUse } from "../registry/in-use.js";
import type { ProjectStores } from "../store/project/projects.js";
import { makeCollectionForms } from "../vault/collect.js";
import type { CollectionForms } from "../vault/collection-form.js";
import {
  fillOrderParser,
  orderParser,
  passkeyOrderParser,
  refuseLate,
  type VaultFill,
} from "../vault/fill.js";
import { makeItemOperations } from "../vault/item-operations.js";
import type { ItemOperations } from "../vault/items.js";
import { openFill } from "../vault/open-fill.js";
import { openPasskey } from "../vault/passkeys.js";
import { keepPasskey } from "../vault/new-passkey.js";
import type { LinkedSession, VaultPorts } from "../vault/ports.js";
import { makeVaultOperations } from "../vault/vault-operations.js";
import type { VaultOperations } from "../vault/vault.js";
import type { DaemonParts } from "./parts.js";

interface Vaults {
  readonly vaults: VaultOperations;
  readonly vaultItems: ItemOperations;
}

export interface VaultParts {
  readonly sessions: Pick<SessionOperations, "get">;
  readonly fill: VaultFill;
}

/** What the API does with the vaults of a project. */
export function openVaults(
  shared: DaemonParts,
  project: ProjectStores,
  { sessions, fill }: VaultParts,
): Vaults {
  const { config, stores, clock, stopping } = shared;
  const { projects } = project;
  const ports: VaultPorts = {
    ...keptIn(shared, projects.project),
    fill,
    clock,
    stopping,
    formUrl: config.vault.form.publicUrl ?? undefined,
    maxVaults: config.vault.maxVaults,
    maxItems: config.vault.maxItems,
    findSession: makeFindSession(projects.project, sessions),
    refuseInUse: (id) => refuseInUse({ poolStore: stores.poolStore, projects }, "Pools name this vault", id),
  };
  return { vaults: makeVaultOperations(ports), vaultItems: makeItemOperations(ports) };
}

/** What the hosted form asks of the vaults of all projects. */
export const openCollectionForms = (shared: DaemonParts): CollectionForms =>
  makeCollectionForms((project) => keptIn(shared, project));

/** Opens what a node is ordered to fill. */
export function openFillOrder(shared: DaemonParts, text: string): ReturnType<typeof openFill> {
  const order = fillOrderParser.json(text);
  return openFill(keptIn(shared, order.project), order);
}

/** Opens what a node is ordered to give a browser. */
export function openPasskeyOrder(shared: DaemonParts, text: string): ReturnType<typeof openPasskey> {
  const order = passkeyOrderParser.json(text);
  return openPasskey(keptIn(shared, order.project), order);
}

/** Refuses what a node was ordered, of either kind, where it comes too late by now. */
export function refuseLateOrder(shared: DaemonParts, text: string): ReturnType<typeof refuseLate> {
  const order = orderParser.json(text);
  return refuseLate(keptIn(shared, order.project), order);
}

/** Keeps a passkey that a page has made, as a node was ordered to. */
export function keepPasskeyOrdered(
  shared: DaemonParts,
  text: string,
  made: Parameters<typeof keepPasskey>[2],
): ReturnType<typeof keepPasskey> {
  const order = passkeyOrderParser.json(text);
  return keepPasskey(keptIn(shared, order.project), order, made);
}

const keptIn = (
  { stores, keys }: DaemonParts,
  project: ProjectId,
): Pick<VaultPorts, "project" | "provider" | "store"> => ({
  project,
  provider: keys.vaults.ring,
  store: stores.projects.of(project).vaults,
});

const makeFindSession =
  (project: ProjectId, sessions: Pick<SessionOperations, "get">) =>
  async (text: string): Promise<LinkedSession | undefined> => {
    const id = findBrowserIdIn(project, text);
    const got = id && (await sessions.get(id, { includeDeleted: false }));
    if (got?.kind !== "done" || got.value.kind !== "session") return undefined;
    const { browser, launch } = got.value.session;
    const { id: lease, protectFilled } = browser.lease;
    const isProtected = launch.protect_filled ?? protectFilled ?? false;
    return { browser: browser.id, lease, vaults: launch.vault_ids ?? [], isProtected };
  };
