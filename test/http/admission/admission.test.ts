import Fastify from "fastify";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Authenticator, Admitted } from "../../../src/access/principal.js";
import { rootPrincipal } from "../../../src/access/principal.js";
import { refusal } from "../../../src/base/errors.js";
import { addAuthorization } from "../../../src/http/admission/authorization.js";
import { makeApp } from "../../../src/http/app.js";
import type { App } from "../../../src/http/bare-app.js";
import { httpOptions, makeDeps, rootPerson } from "../../support/http/http-server.js";

/** What a hook on replies learns of each request. */
interface Answered {
  readonly who: string | undefined;
  readonly route: string | undefined;
  readonly status: number;
}
const answered: Answered[] = [];
const root = rootPrincipal(rootPerson);
const authenticator: Authenticator = {
  admit({ authorization }): Admitted | Promise<Admitted> {
    if (authorization === "Bearer now") return { kind: "admitted", principal: root };
    if (authorization === "Bearer late")
      return Promise.resolve({ kind: "admitted", principal: { ...root, id: "late" } });
    if (authorization === "Bearer narrow")
      return { kind: "admitted", principal: { ...root, policy: { statements: [] } } };
    if (authorization === "Bearer elsewhere") return { ...refusal("project_not_found"), principal: root };
    if (authorization === "Bearer broken") return Promise.reject(new Error("the store is on fire"));
    return refusal("unauthorized");
  },
  defer: () => undefined,
};

let app: App;
beforeAll(async () => {
  app = makeApp(
    httpOptions,
    { ...makeDeps(), authenticator },
    {
      state: { draining: false, closing: false },
      prepare: (made) =>
        void made.addHook("onResponse", (request, reply, next) => {
          const { principal, routeOptions } = request;
          answered.push({ who: principal?.id, route: routeOptions.url, status: reply.statusCode });
          next();
        }),
    },
  );
  await app.ready();
});
afterAll(() => app.close());

test.each([
  ["one that is let in at once", "now", { who: "root", status: 200 }],
  ["one that is looked up", "late", { who: "late", status: 200 }],
  ["one that may not go where it wants", "elsewhere", { who: "root", status: 404 }],
  ["one whose look-up fails", "broken", { who: undefined, status: 500 }],
  ["nobody", "nobody", { who: undefined, status: 401 }],
])("a hook on replies knows the caller and the route: %s", async (_, key, expected) => {
  answered.length = 0;
  const headers = { authorization: `Bearer ${key}` };
  const reply = await app.inject({ method: "GET", url: "/browser_pools/herd?limit=3", headers });
  expect(reply.statusCode).toBe(expected.status);
  await expect.poll(() => answered).toEqual([{ ...expected, route: "/browser_pools/:id_or_name" }]);
});

test("the context names the project that the request is about", async () => {
  const reply = await app.inject({ url: "/auth/context", headers: { authorization: "Bearer late" } });
  expect(reply.json()).toMatchObject({ principal: { type: "api_key", id: "late" } });
});

test("metrics need a key that reaches everything, but for who comes by a loopback name", async () => {
  const statusFor = async (key: string, host: string): Promise<number> =>
    (await app.inject({ url: "/metrics", headers: { host, authorization: `Bearer ${key}` } })).statusCode;
  expect(await statusFor("now", "somewhere.example")).toBe(200);
  expect(await statusFor("narrow", "somewhere.example")).toBe(403);
  expect(await statusFor("nobody", "somewhere.example")).toBe(401);
  expect(await statusFor("nobody", "localhost")).toBe(200);
});

test("a route for which nobody has said what it needs keeps the daemon from starting", () => {
  const made = Fastify() as unknown as App;
  addAuthorization(made, makeDeps());
  const add = (schema?: { operationId: string }) => () =>
    made.get(`/${schema?.operationId ?? "none"}`, schema ? { schema } : {}, async () => "");
  expect(add({ operationId: "forgotten" })).toThrow("operation forgotten has no row");
  expect(add()).toThrow("no row");
  expect(add({ operationId: "getProfile" })).not.toThrow();
});
