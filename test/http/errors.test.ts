import { readFile, writeFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { type ErrorCode, errors, errorsTable, RemudaError, refusal } from "../../src/base/errors.js";
import { operations } from "../../src/http/schemas/operations.js";
import { send, sharedServer } from "../support/http/http-server.js";

const server = sharedServer();
const codes = Object.keys(errors) as ErrorCode[];
const acquire = () => send(`${server().url}/browser_pools/herd/acquire`, { method: "POST", body: {} });

test("the OpenAPI document lists exactly the codes of the table", async () => {
  const { body } = await send(`${server().url}/openapi.json`);
  expect([...body.components.schemas.Error.properties.code.enum].sort()).toEqual([...codes].sort());
});

test("docs/errors.md lists exactly the codes of the table (node scripts/bootstrap.mjs settings writes it)", async () => {
  const page = await readFile(new URL("../../docs/errors.md", import.meta.url), "utf8");
  const block = /<!-- errors -->\n([\s\S]*?)\n<!-- \/errors -->/.exec(page)?.[1];
  expect(block).toBe(errorsTable());
});

test("an operation declares each status under which it may refuse, and says which codes have it", () => {
  const { response } = operations.acquireBrowser;
  expect(Object.keys(response)).toEqual([
    "200",
    "204",
    "400",
    "401",
    "403",
    "404",
    "409",
    "429",
    "500",
    "503",
  ]);
  expect(response[429]).toMatchObject({
    description: expect.stringContaining(`\`too_many_waiters\`: ${errors.too_many_waiters.message}`),
  });
});

test("each code is declared by an operation, or is the router's or the gateway's own", () => {
  const declared = Object.values(operations)
    .map(({ response }) => JSON.stringify(response))
    .join();
  expect(codes.filter((code) => !declared.includes(`\`${code}\``))).toEqual([
    "route_not_found",
    "projects_disabled",
    "method_not_allowed",
    "pool_deleted",
    "misdirected",
    "too_many_clients",
  ]);
});

test.each(codes)(
  "a refusal as %s has the table's status, the flat body, a request id, and tells clients whether to come again",
  async (code) => {
    server().operations.answer("pools.acquire", refusal(code));
    const { status, retry, message } = errors[code];
    const got = await acquire();
    expect(got.status).toBe(status);
    expect(got.body).toEqual({ code, message });
    expect(got.headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(got.headers.get("x-request-id")).toMatch(/^[0-9a-z]{24}$/);
    const isRepeated = status === 409 || status === 429 || status >= 500;
    expect(got.headers.get("x-should-retry")).toBe(isRepeated && !retry ? "false" : null);
    expect(got.headers.get("retry-after")).toBe(retry && [429, 503, 529].includes(status) ? "1" : null);
  },
);

test("a refusal's own words, details and time to come again are passed on", async () => {
  const details = [{ code: "invalid_input", message: "name: is in use" }];
  server().operations.answer(
    "pools.acquire",
    refusal("too_many_waiters", { message: "1000 are waiting", details, retryAfterSeconds: 2.2 }),
  );
  const got = await acquire();
  expect(got.body).toEqual({ code: "too_many_waiters", message: "1000 are waiting", details });
  expect(got.headers.get("retry-after")).toBe("3");
});

test("what a full disk throws is 503 with a time to come again, and noted", async () => {
  server().operations.answer(
    "pools.acquire",
    await writeFile("/dev/full", "x").then(
      () => new Error("it was not full"),
      (error: Error) => error,
    ),
  );
  const got = await acquire();
  expect(got).toMatchObject({ status: 503, body: { code: "unavailable" } });
  expect(got.headers.get("retry-after")).toBe("1");
});

test("a coded error that is thrown is answered as its code and noted", async () => {
  server().operations.answer("pools.acquire", new RemudaError("store_unavailable"));
  expect(await acquire()).toMatchObject({ status: 503, body: { code: "store_unavailable" } });
  expect(server().lines).toContainEqual(
    expect.objectContaining({ level: "warn", message: "request refused" }),
  );
});

test("an unexpected error is answered without a word of it, and logged with the request's id", async () => {
  const error = new TypeError("cannot read password of undefined");
  server().operations.answer("pools.acquire", error);
  const got = await acquire();
  expect(got.status).toBe(500);
  expect(got.body).toEqual({ code: "internal", message: errors.internal.message });
  const fields = {
    error,
    code: "internal",
    method: "POST",
    path: "/browser_pools/herd/acquire",
    request: got.headers.get("x-request-id"),
  };
  expect(server().lines).toContainEqual({ level: "error", message: "request failed", fields });
});

test("an error with a status of its own does not choose the answer where it is ours", async () => {
  server().operations.answer(
    "pools.acquire",
    Object.assign(new Error("secret"), { statusCode: 302, code: "FST_ERR_CTP_INVALID_MEDIA_TYPEX" }),
  );
  expect(await acquire()).toMatchObject({ status: 500, body: { code: "internal" } });
});

test("a path that is not there and a method a path does not take are told apart", async () => {
  expect(await send(`${server().url}/browserz?token=x`)).toMatchObject({
    status: 404,
    body: { code: "route_not_found" },
  });
  expect(
    await send(`${server().url}/browsers/x/computer/click_mouse`, { method: "POST", body: {} }),
  ).toMatchObject({ status: 404, body: { code: "route_not_found" } });
  // The route of the page's own files takes GET, and has no such file.
  for (const path of ["/docs/static/nothing", "/docs/static/..%2f..%2f..%2fetc%2fpasswd"])
    expect(await send(server().url + path)).toMatchObject({ status: 404, body: { code: "route_not_found" } });
  const got = await send(`${server().url}/browser_pools/herd`, { method: "PUT", body: {} });
  expect(got).toMatchObject({
    status: 404,
    body: { code: "method_not_allowed", message: "This path takes DELETE, GET, HEAD, PATCH" },
  });
  expect(await send(`${server().url}/browser_pools/`)).toMatchObject({
    status: 404,
    body: { code: "pool_not_found" },
  });
});
