import { afterAll, beforeAll, expect, test } from "vitest";
import { makeApiKeyOperations } from "../../../src/access/api-key-operations.js";
import { type Principal, rootPrincipal } from "../../../src/access/principal.js";
import { Secret } from "../../../src/base/crypto/secret.js";
import { newProjectId, newRequestId, type ProjectId } from "../../../src/base/ids.js";
import { RedisApiKeyStore } from "../../../src/store/organization/api-key-store.js";
import { rootPerson } from "../../support/http/http-server.js";
import { startRedis, type TestRedis } from "../../support/store/redis.js";
import { openStoreBed, type StoreBed } from "../../support/store/store-bed.js";

let server: TestRedis;
let bed: StoreBed;
beforeAll(async () => {
  server = await startRedis();
  bed = await openStoreBed(server, { project: "people" });
});
afterAll(async () => {
  await bed.close();
  await server.stop();
});

const admin = (scope: ProjectId | null): Principal => ({
  ...rootPrincipal({ ...rootPerson, id: "ada" }),
  method: "jwt",
  source: "oauth",
  credentialId: null,
  type: "user",
  id: "ada",
  credentialScope: scope,
  effectiveScope: scope,
});

test("a person's repeat by a token of another project is not told the key of the first", async () => {
  const limits = { maxKeys: 9, maxDeletedKeys: 9, idempotencyMs: 60_000, requestsPerMinute: null };
  const operations = makeApiKeyOperations({
    store: new RedisApiKeyStore(bed.store, limits),
    projects: { nameOf: async () => "known" },
    targets: { hasProject: async () => true, has: async () => true },
    secret: new Secret("the secret of this suite"),
  });
  const scopes = [newProjectId(), newProjectId(), null];
  const make = async (scope: ProjectId | null) => {
    const gone = new AbortController().signal;
    const caller = { principal: admin(scope), request: newRequestId(), retryCount: 0, gone };
    const got = await operations.create({ name: "mine" }, { ...caller, idempotencyKey: "once" });
    if (got.kind === "refused") throw new Error(got.code);
    return { id: got.value.key.id, text: got.value.text.reveal(), project: got.value.key.projectId ?? null };
  };
  const made = [];
  for (const scope of scopes) made.push(await make(scope));
  expect(made.map(({ project }) => project)).toEqual(scopes);
  for (const [at, scope] of scopes.entries()) expect(await make(scope)).toEqual(made[at]);
});
