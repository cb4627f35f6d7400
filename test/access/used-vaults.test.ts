import { afterEach, expect, test } from "vitest";
import { askFor, listOperations } from "../support/access/listed-operations.js";
import { needs } from "../support/access/needed-actions.js";
import { authenticator, ids, keyWith, thingsWith } from "../support/access/principals.js";
import { type Got, send, sharedServer } from "../support/http/http-server.js";

/** Those of every browser. */
let linked: readonly string[] = [];
afterEach(() => void (linked = []));
const things = {
  find: (...asked: Parameters<ReturnType<typeof thingsWith>["find"]>) =>
    thingsWith(undefined, linked).find(...asked),
  choose: thingsWith(undefined).choose,
};
const server = sharedServer({}, { authenticator, thingsIn: () => things });
const calls = () => server().operations.calls;

const whole = "projects/default/*";
const onVault = (id: string) => ["vaults:use", `projects/default/vaults/${id}`] as const;
const onBrowser = (action: string) => [action, `projects/default/browsers/${ids.browsers}`] as const;

test("whatever is done to a browser needs the use of every vault that it has", async () => {
  const operations = (await listOperations(server().url)).filter(({ operationId }) => {
    const row = needs[operationId];
    return row !== undefined && row[0] === "thing" && row[1] === "browsers";
  });
  expect(operations.length).toBe(8);
  linked = ["v1", "v2"];
  for (const operation of operations) {
    const actions = (needs[operation.operationId] ?? []).slice(2) as string[];
    const browsers = actions.map((action) => [action, whole] as const);
    const ask = (...more: (readonly [string, string])[]): Promise<Got> =>
      askFor(server().url, operation, { bearer: keyWith(...browsers, ...more) });
    for (const lacking of [[], [onVault("v1")]])
      expect(await ask(...lacking), operation.operationId).toMatchObject({
        status: 403,
        body: { code: "insufficient_scope" },
      });
    const admitted = await ask(onVault("v1"), onVault("v2"));
    expect([401, 403, 404], `${operation.operationId} ${admitted.text}`).not.toContain(admitted.status);
  }
});

test("what is done with a vault in a browser needs the use of that browser, too", async () => {
  const fields = [{ field: "password", selector: "#password" }];
  const fill = (...statements: (readonly [string, string])[]): Promise<Got> =>
    send(`${server().url}/vaults/mine/items/shop/operations`, {
      method: "POST",
      body: { type: "fill", browser_id: ids.browsers, fields },
      headers: { authorization: `Bearer ${keyWith(...statements)}` },
    });
  const use = ["vaults:use", whole] as const;
  calls().length = 0;
  expect(await fill(use)).toMatchObject({ status: 404, body: { code: "browser_not_found" } });
  expect(await fill(use, onBrowser("browsers:delete"))).toMatchObject({
    status: 403,
    body: { code: "insufficient_scope" },
  });
  linked = ["v1"];
  expect(await fill(onVault(ids.vaults), onBrowser("browsers:use"))).toMatchObject({ status: 403 });
  expect(calls()).toEqual([]);
  expect((await fill(use, onBrowser("browsers:use"))).status).toBe(200);
});
