import { beforeAll, expect, test } from "vitest";
import { sharedAccessBed } from "../support/access/access-bed.js";

const bed = sharedAccessBed(2);
/** The official client's next attempt. */
const repeat = { "x-stainless-retry-count": "1" };
const path = (key: string): string => `/vaults/logins/items/${key}`;

beforeAll(async () => {
  expect((await bed.root.call("POST /vaults", { name: "logins" })).status).toBe(201);
});
async function make(key: string): Promise<string> {
  const fields = [{ name: "password", type: "password" }];
  const made = await bed.root.call(`PUT ${path(key)}`, {
    type: "credential",
    spec: { provider: "native", fields },
  });
  expect(made, made.text).toMatchObject({ status: 200, body: { key: decodeURIComponent(key) } });
  return String(made.body.id);
}
const find = (key: string) => bed.root.call(`GET ${path(key)}`);

test("a repeat of the deletion of an item by its key deletes no later one of that key, at another control too", async () => {
  const { root } = bed;
  const other = bed.as(root.apiKey, 1);
  const removal = `DELETE ${path("a%2Fshop")}`;
  await make("a%2Fshop");
  // Its reply is lost, so that the client asks again.
  expect((await root.call(removal, {})).status).toBe(204);
  const later = await make("a%2Fshop");
  for (const client of [root, other]) expect((await client.call(removal, {}, repeat)).status).toBe(204);
  expect(await find("a%2Fshop")).toMatchObject({ status: 200, body: { id: later } });
  // Whoever asks anew means the later one.
  expect((await other.call(removal, {})).status).toBe(204);
  expect((await find("a%2Fshop")).status).toBe(404);
});

test("the repeat of a deletion whose first attempt never came deletes the item", async () => {
  await make("lost");
  expect((await bed.root.call(`DELETE ${path("lost")}`, {}, repeat)).status).toBe(204);
  expect((await find("lost")).status).toBe(404);
});

test("expected_item_id keeps whoever repeats without saying so from deleting another item", async () => {
  const id = await make("sure");
  const surely = `DELETE ${path("sure")}?expected_item_id=${id}`;
  expect((await bed.root.call(surely, {})).status).toBe(204);
  expect((await bed.root.call(surely, {})).status).toBe(404);
  const later = await make("sure");
  expect(await bed.root.call(surely, {})).toMatchObject({ status: 409, body: { code: "item_mismatch" } });
  expect(await find("sure")).toMatchObject({ body: { id: later } });
});
