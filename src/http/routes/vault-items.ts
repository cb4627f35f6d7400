import { ItemCreate, ItemOperation, ItemPatch } from "../../vault/item-bodies.js";
import type { WireNames } from "../../vault/wire-names.js";
import { itemRef } from "../../access/first-removals.js";
import { refusal } from "../../base/errors.js";
import type { App } from "../bare-app.js";
import type { HttpDeps } from "../deps.js";
import { recordedFirst } from "../audit.js";
import { callerOf, type InProject, principalOf } from "../admission/caller.js";
import { sendRefusal, sendRemoved } from "../errors.js";
import { parseVaultRef } from "../refs.js";
import { operations } from "../schemas/operations.js";
import {
  NoFields,
  VaultEventsQuery,
  VaultItemQuery,
  VaultItemRemovalQuery,
  VaultItemRefParams,
  VaultRefParams,
} from "../schemas/requests.js";
import { eventView, fillView, itemView } from "../views/vault-item-view.js";

interface Deps {
  readonly inProject: InProject;
  /** Which of the two sets of names is answered. */
  readonly wireNames: WireNames;
  readonly findRemoved: HttpDeps["findRemoved"];
}
const path = "/vaults/:id_or_name/items";
const params = VaultItemRefParams;

/** docs/vault.md#items. */
export function addVaultItems(app: App, deps: Deps): void {
  addReads(app, deps);
  addWrites(app, deps);
  addRemoval(app, deps);
  addOperate(app, deps);
}

function addReads(app: App, { inProject, wireNames }: Deps): void {
  app.get(
    path,
    { schema: { ...operations.listVaultItems, params: VaultRefParams } },
    async (request, reply) => {
      const got = await inProject(request).vaultItems.list(parseVaultRef(request.params));
      if (got.kind === "refused") return sendRefusal(reply, got);
      return reply.send(got.value.map((item) => itemView(item, wireNames)));
    },
  );

  app.get(
    `${path}/:key`,
    { schema: { ...operations.getVaultItem, params, querystring: VaultItemQuery } },
    async (request, reply) => {
      const { wait = 0, expand } = request.query;
      const { gone } = callerOf(request, reply);
      const asked = { waitMs: wait * 1000, gone, expand: expand !== undefined };
      const { key } = request.params;
      const got = await inProject(request).vaultItems.get(parseVaultRef(request.params), key, asked);
      return got.kind === "refused" ? sendRefusal(reply, got) : reply.send(itemView(got.value, wireNames));
    },
  );

  app.get(
    `${path}/:key/events`,
    { schema: { ...operations.listVaultItemEvents, params, querystring: VaultEventsQuery } },
    async (request, reply) => {
      const { wait = 0, after } = request.query;
      const { gone } = callerOf(request, reply);
      const asked = { waitMs: wait * 1000, gone, ...(after !== undefined && { after }) };
      const { key } = request.params;
      const got = await inProject(request).vaultItems.events(parseVaultRef(request.params), key, asked);
      return got.kind === "refused" ? sendRefusal(reply, got) : reply.send(got.value.map(eventView));
    },
  );
}

function addWrites(app: App, { inProject, wireNames }: Deps): void {
  app.put(
    `${path}/:key`,
    { ...recordedFirst, schema: { ...operations.putVaultItem, params, body: ItemCreate } },
    async (request, reply) => {
      const sent = { body: request.body, request: callerOf(request, reply).request };
      const { key } = request.params;
      const got = await inProject(request).vaultItems.put(parseVaultRef(request.params), key, sent);
      return got.kind === "refused" ? sendRefusal(reply, got) : reply.send(itemView(got.value, wireNames));
    },
  );

  app.patch(
    `${path}/:key`,
    { ...recordedFirst, schema: { ...operations.updateVaultItem, params, body: ItemPatch } },
    async (request, reply) => {
      const sent = { body: request.body, request: callerOf(request, reply).request };
      const { key } = request.params;
      const got = await inProject(request).vaultItems.update(parseVaultRef(request.params), key, sent);
      return got.kind === "refused" ? sendRefusal(reply, got) : reply.send(itemView(got.value, wireNames));
    },
  );
}

/** The repeat of a request means the item that the first attempt meant, whatever has its key by now. */
function addRemoval(app: App, { inProject, findRemoved }: Deps): void {
  const schema = {
    ...operations.deleteVaultItem,
    params,
    querystring: VaultItemRemovalQuery,
    body: NoFields,
  };
  app.delete(`${path}/:key`, { ...recordedFirst, schema }, async (request, reply) => {
    const { key } = request.params;
    const vault = parseVaultRef(request.params);
    const caller = callerOf(request, reply);
    const { expected_item_id: expected } = request.query;
    const ref = itemRef(vault, key);
    const isRepeat = caller.retryCount > 0;
    const meant =
      expected ?? (await findRemoved({ kind: "vaultItems", ref, principal: principalOf(request), isRepeat }));
    const { vaultItems } = inProject(request);
    const got = await vaultItems.remove(vault, key, meant === ref ? undefined : meant);
    const isGone = got.kind === "refused" && got.code === "item_mismatch" && expected === undefined;
    return sendRemoved(reply, isGone ? refusal("vault_item_not_found") : got, caller);
  });
}

function addOperate(app: App, { inProject, wireNames }: Deps): void {
  app.post(
    `${path}/:key/operations`,
    { ...recordedFirst, schema: { ...operations.operateVaultItem, params, body: ItemOperation } },
    async (request, reply) => {
      const { request: id, gone } = callerOf(request, reply);
      const sent = { body: request.body, request: id, gone };
      const { key } = request.params;
      const got = await inProject(request).vaultItems.operate(parseVaultRef(request.params), key, sent);
      if (got.kind === "refused") return sendRefusal(reply, got);
      const { value } = got;
      return reply.send(value.kind === "fill" ? fillView(value.outcome) : itemView(value.item, wireNames));
    },
  );
}
