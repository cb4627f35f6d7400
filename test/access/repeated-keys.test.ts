import { expect, test } from "vitest";
import { sharedAccessBed } from "../support/access/access-bed.js";
import type { DaemonClient } from "../support/daemon/daemon.js";
import type { Got } from "../support/http/http-server.js";

const bed = sharedAccessBed(1, { projects: { enabled: true } });
const create = (body: object, idempotencyKey: string, client: DaemonClient = bed.root): Promise<Got> =>
  client.call("POST /org/api_keys", body, { "idempotency-key": idempotencyKey });
interface Rotation {
  readonly idempotencyKey: string;
  readonly days?: number;
  readonly client?: DaemonClient;
}
const rotate = (id: string, { idempotencyKey, days = 1, client = bed.root }: Rotation): Promise<Got> =>
  client.call(
    `POST /org/api_keys/${id}/rotate`,
    { expire_in_days: days },
    { "idempotency-key": idempotencyKey },
  );
const mismatch = { status: 400, body: { code: "idempotency_mismatch" } };

test("the repeat of a rotation is told the same key though the rotated one is deleted since", async () => {
  const old = await bed.make();
  const first = await rotate(old.id, { idempotencyKey: "turn" });
  await bed.kernel.apiKeys.delete(old.id);
  expect(await rotate(old.id, { idempotencyKey: "turn" })).toMatchObject({ status: 201, body: first.body });
  expect(await rotate(old.id, { idempotencyKey: "turn", days: 2 })).toMatchObject(mismatch);
  const missing = { status: 404, body: { code: "not_found" } };
  expect(await rotate(old.id, { idempotencyKey: "another-turn" })).toMatchObject(missing);
  const stranger = bed.as((await bed.make()).key);
  expect(await rotate(old.id, { idempotencyKey: "turn", client: stranger })).toMatchObject(missing);
});

test("the repeat of a creation is told the same key though what its policy names is deleted since", async () => {
  const profile = await bed.kernel.profiles.create({ name: "passing" });
  const resource = `projects/default/profiles/${profile.id}`;
  const sent = { name: "reader", policy: { statements: [{ action: "profiles:read", resource }] } };
  const first = await create(sent, "made");
  expect(first.status).toBe(201);
  await bed.kernel.profiles.delete(profile.id);
  expect(await create(sent, "made")).toMatchObject({ status: 201, body: first.body });
  expect(await create({ ...sent, name: "other" }, "made")).toMatchObject(mismatch);
  const refused = { status: 400, body: { code: "bad_request" } };
  expect(await create(sent, "made-anew")).toMatchObject(refused);
  const stranger = bed.as((await bed.make()).key);
  expect(await create(sent, "made", stranger)).toMatchObject(refused);
});

test("the repeat of a creation is told the same key though its project is deleted since", async () => {
  const project = await bed.kernel.projects.create({ name: "gone by then" });
  const sent = { name: "of a project", project_id: project.id };
  const first = await create(sent, "in-project");
  expect(first.status).toBe(201);
  await bed.kernel.projects.delete(project.id);
  const { id, key } = first.body;
  expect(await create(sent, "in-project")).toMatchObject({ status: 201, body: { id, key } });
  expect(await create(sent, "in-project-anew")).toMatchObject({
    status: 404,
    body: { code: "project_not_found" },
  });
});
