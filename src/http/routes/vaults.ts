import { timestampOf } from "../../base/clock.js";
import { VaultCreate } from "../../vault/item-bodies.js";
import type { Vault } from "../../vault/vault.js";
import type { App } from "../bare-app.js";
import { recordedFirst } from "../audit.js";
import { callerOf, type InProject } from "../admission/caller.js";
import { sendRefusal, sendRemoved } from "../errors.js";
import { pagingOf } from "../query.js";
import { operations } from "../schemas/operations.js";
import { NoFields, VaultListQuery, VaultRefParams } from "../schemas/requests.js";
import type { VaultReply } from "../schemas/vault-replies.js";
import { parseVaultRef } from "../refs.js";
import { pagingHeaders } from "../views/views.js";

interface Deps {
  readonly inProject: InProject;
}
const params = VaultRefParams;

/** docs/vault.md#vaults. */
export function addVaults(app: App, deps: Deps): void {
  addReads(app, deps);
  addWrites(app, deps);
}

function addReads(app: App, { inProject }: Deps): void {
  app.get(
    "/vaults",
    { schema: { ...operations.listVaults, querystring: VaultListQuery } },
    async (request, reply) => {
      const { name, query } = request.query;
      const asked = {
        ...pagingOf(request.query, request),
        ...(name !== undefined && { name }),
        ...(query !== undefined && { query }),
      };
      const page = await inProject(request).vaults.list(asked);
      return reply.headers(pagingHeaders(page, asked)).send(page.items.map(viewOf));
    },
  );

  app.get("/vaults/:id_or_name", { schema: { ...operations.getVault, params } }, async (request, reply) => {
    const got = await inProject(request).vaults.get(parseVaultRef(request.params));
    return got.kind === "refused" ? sendRefusal(reply, got) : reply.send(viewOf(got.value));
  });

  app.get(
    "/vaults/:id_or_name/encryption_key",
    { schema: { ...operations.getVaultEncryptionKey, params } },
    async (request, reply) => {
      const got = await inProject(request).vaults.encryptionKey(parseVaultRef(request.params));
      return got.kind === "refused" ? sendRefusal(reply, got) : reply.send(got.value);
    },
  );
}

function addWrites(app: App, { inProject }: Deps): void {
  app.post(
    "/vaults",
    { ...recordedFirst, schema: { ...operations.createVault, body: VaultCreate } },
    async (request, reply) => {
      const made = await inProject(request).vaults.upsert(request.body);
      if (made.kind === "refused") return sendRefusal(reply, made);
      return reply.code(made.value.isNew ? 201 : 200).send(viewOf(made.value.vault));
    },
  );

  app.delete(
    "/vaults/:id_or_name",
    {
      config: { ...recordedFirst.config, removes: "vaults" },
      schema: { ...operations.deleteVault, params, body: NoFields },
    },
    async (request, reply) => {
      const got = await inProject(request).vaults.remove(parseVaultRef(request.params));
      return sendRemoved(reply, got, callerOf(request, reply));
    },
  );
}

const viewOf = ({ id, name, createdAt, updatedAt }: Vault): VaultReply => ({
  id,
  name,
  created_at: timestampOf(createdAt),
  updated_at: timestampOf(updatedAt),
});
