import { afterAll, beforeAll, expect, test } from "vitest";
import { type Daemon, startDaemon } from "../support/daemon/daemon.js";
import { send } from "../support/http/http-server.js";
import { readDocument } from "../support/http/openapi-document.js";
import { badInputs, findFault, type OpenApi } from "../support/http/openapi-inputs.js";

let daemon: Daemon;
beforeAll(async () => {
  daemon = await startDaemon();
});
afterAll(() => daemon.stop());

/** All that the API shows, without what passes with time. */
async function everything(): Promise<unknown> {
  const shown = await Promise.all(
    [
      "/browser_pools?limit=100",
      "/browsers?status=all&limit=100",
      "/browser_pools/herd",
      "/browser_pools/herd/browsers",
      "/profiles?limit=100",
    ].map((path) => daemon.call(`GET ${path}`)),
  );
  return JSON.parse(
    JSON.stringify(
      shown.map(({ body }) => body),
      (name, value: unknown) => (["uptime_ms", "age_ms"].includes(name) ? 0 : value),
    ),
  );
}

test("every field of every operation in every wrong kind is answered 400, nothing answers 500, and nothing changes", async () => {
  await daemon.makePool({ name: "herd", size: 2, reset_on_release: "state" });
  const lent = await daemon.call("POST /browser_pools/herd/acquire", {
    name: "mine",
    tags: { team: "a" },
    acquire_timeout_seconds: 30,
  });
  expect(lent.status).toBe(200);
  await daemon.call("POST /profiles", { name: "me" });
  const before = await everything();
  const document = await readDocument<OpenApi>(daemon.url);
  const inputs = badInputs(document, { browser_pools: "herd", browsers: "mine", profiles: "me" });
  expect(inputs.length).toBeGreaterThan(1500);
  const faults: string[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let input = inputs[next++]; input; input = inputs[next++]) {
      const got = await send(`${daemon.url}${input.url}`, {
        method: input.method,
        headers: input.headers,
        ...(input.text !== undefined && { text: input.text }),
      });
      const fault = findFault(input, got);
      if (fault !== undefined) faults.push(fault);
    }
  };
  await Promise.all(Array.from({ length: 8 }, worker));
  expect(faults).toEqual([]);
  expect(await everything()).toEqual(before);
  expect(daemon.log).not.toContain('"level":"error"');
}, 300_000);

test("what is well-formed but refused changes nothing either", async () => {
  const [{ body: lease }] = [await daemon.call("GET /browsers/mine")];
  const before = await everything();
  const other = { "x-remuda-lease-id": "a".repeat(24) };
  const refused: [string, unknown, Record<string, string>, number, string][] = [
    ["POST /browser_pools", { name: "herd", size: 1 }, {}, 409, "name_taken"],
    ["POST /browser_pools", { name: "far", size: 1, region: "eu-west" }, {}, 400, "not_supported"],
    ["POST /browser_pools", { name: "huge", size: 100_000 }, {}, 400, "bad_request"],
    [
      "POST /browser_pools",
      { name: "odd", size: 1, headless: false, memory: "1GiB" },
      {},
      400,
      "bad_request",
    ],
    [
      "PATCH /browser_pools/herd",
      { expected_network: { private_hosts: [] }, size: 9 },
      {},
      409,
      "stale_network",
    ],
    ["PATCH /browser_pools/herd", { profile: {} }, {}, 400, "bad_request"],
    ["PATCH /browser_pools/herd", { network: { allowed_hosts: [] } }, {}, 400, "bad_request"],
    ["PATCH /browser_pools/herd", { start_url: "file:///etc/passwd" }, {}, 400, "bad_request"],
    ["PATCH /browser_pools/none", { size: 1 }, {}, 404, "pool_not_found"],
    ["DELETE /browser_pools/herd", {}, {}, 400, "pool_in_use"],
    ["POST /browser_pools/herd/acquire", { name: "mine" }, {}, 409, "name_taken"],
    ["POST /browser_pools/herd/acquire", { profile: { name: "p" } }, {}, 400, "not_supported"],
    ["POST /browser_pools/herd/acquire", { start_url: "chrome://settings" }, {}, 400, "bad_request"],
    [
      "POST /browser_pools/herd/release",
      { session_id: lease.session_id, lease_id: "a".repeat(24) },
      {},
      409,
      "lease_superseded",
    ],
    ["POST /browser_pools/herd/release", { session_id: lease.session_id }, other, 409, "lease_superseded"],
    ["POST /browser_pools/herd/release", { session_id: "no such session" }, {}, 404, "browser_not_found"],
    ["POST /browser_pools/none/release", { session_id: lease.session_id }, {}, 404, "pool_not_found"],
    ["PATCH /browsers/mine", { name: "other" }, other, 409, "lease_superseded"],
    ["PATCH /browsers/mine", { proxy_id: "p" }, {}, 400, "bad_request"],
    ["PATCH /browsers/mine", { network: { allowed_hosts: [] } }, {}, 400, "bad_request"],
    ["DELETE /proxies/none", undefined, {}, 404, "proxy_not_found"],
    ["DELETE /browsers/mine", undefined, other, 409, "lease_superseded"],
    ["DELETE /browsers/none", undefined, {}, 404, "browser_not_found"],
    ["POST /browsers", { gpu: true }, {}, 403, "insufficient_plan"],
    ["POST /browsers", { region: "us-west", headless: true }, {}, 400, "not_supported"],
    ["POST /browsers", { video_memory: "2GiB" }, {}, 400, "bad_request"],
    ["POST /browsers", { proxy_id: "p", proxy: { id: "p" } }, {}, 400, "bad_request"],
    ["POST /browsers", { name: "mine", headless: true }, {}, 409, "name_taken"],
    ["GET /org/projects", undefined, {}, 404, "projects_disabled"],
    ["GET /browsers", undefined, { "x-kernel-project-id": "another" }, 404, "project_not_found"],
    ["GET /browsers", undefined, { authorization: "Bearer nobody" }, 401, "unauthorized"],
  ];
  for (const [operation, body, headers, status, code] of refused) {
    const got = await daemon.call(operation, body, headers);
    expect({ operation, body, status: got.status, code: got.body?.code }).toEqual({
      operation,
      body,
      status,
      code,
    });
    if (status === 409) expect(got.headers.get("x-should-retry"), operation).toBe("false");
    expect(got.headers.get("x-request-id")).toBeTruthy();
  }
  expect(await everything()).toEqual(before);
});
