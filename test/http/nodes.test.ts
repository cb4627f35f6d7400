import { beforeEach, expect, test } from "vitest";
import { refusal } from "../../src/base/errors.js";
import { send, sharedServer } from "../support/http/http-server.js";
import { node } from "../support/http/recorded-nodes.js";

const server = sharedServer();
beforeEach(() => server().operations.reset());
const at = (path: string): string => `${server().url}${path}`;

test("nodes are listed page by page, each with its state, its room and what pools choose it by", async () => {
  const got = await send(at("/nodes?limit=1"));
  expect(got.status).toBe(200);
  expect(got.body).toEqual([
    {
      id: "node-1",
      state: "ready",
      browsers: 3,
      max_browsers: 50,
      memory_bytes: 2 ** 34,
      engines: ["chromium"],
      zone: "north",
      labels: { disk: "fast" },
      last_error: "no display",
    },
  ]);
  server().operations.answer("nodes.all", [{ ...node, isLate: true }, node]);
  const late = await send(at("/nodes?limit=1"));
  expect(late.body).toMatchObject([{ state: "late" }]);
  expect(late.headers.get("x-has-more")).toBe("true");
  const restored = { at: 1_700_000_000_000, pools: 1, browsers: 2, leases: 3 };
  server().operations.answer("nodes.all", [{ ...node, restored }]);
  expect((await send(at("/nodes"))).body).toMatchObject([
    { restored: { at: "2023-11-14T22:13:20.000Z", pools: 1, browsers: 2, leases: 3 } },
  ]);
  server().operations.answer("nodes.all", [{ ...node, maxBrowsers: Number.MAX_SAFE_INTEGER }]);
  expect((await send(at("/nodes"))).body).toEqual([
    expect.not.objectContaining({ max_browsers: expect.anything() as unknown }),
  ]);
});

test("a drain lasts 540 s at most where nothing else is asked for, and the answer says until when", async () => {
  const got = await send(at("/nodes/node-1/drain"), { method: "POST", body: {} });
  expect(got).toMatchObject({
    status: 200,
    body: { state: "draining", drains_until: "2023-11-14T22:13:20.000Z" },
  });
  await send(at("/nodes/node-1/drain"), { method: "POST", body: { limit_seconds: 0 } });
  expect(server().operations.calls.map(({ args }) => args)).toEqual([
    ["node-1", 540_000],
    ["node-1", 0],
  ]);
  expect(
    await send(at("/nodes/node-1/drain"), { method: "POST", body: { limit_seconds: -1 } }),
  ).toMatchObject({ status: 400, body: { code: "bad_request" } });
});

test("the end of a drain is 204 without a body, and of no node 404", async () => {
  expect((await send(at("/nodes/node-1/drain"), { method: "DELETE" })).status).toBe(204);
  server().operations.answer("nodes.endDrain", refusal("node_not_found"));
  expect(await send(at("/nodes/node-2/drain"), { method: "DELETE" })).toMatchObject({
    status: 404,
    body: { code: "node_not_found" },
  });
});
