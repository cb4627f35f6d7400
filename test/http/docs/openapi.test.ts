import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { expect, test } from "vitest";
import { makeApp } from "../../../src/http/app.js";
import { httpOptions, makeDeps, send, sharedServer } from "../../support/http/http-server.js";

const server = sharedServer();
const documentOf = async () => (await send(`${server().url}/openapi.json`)).body;
type Node = Record<string, unknown>;

function* nodesOf(value: unknown): Generator<Node> {
  if (typeof value !== "object" || value === null) return;
  if (!Array.isArray(value)) yield value as Node;
  for (const inner of Object.values(value)) yield* nodesOf(inner);
}

interface Listed {
  readonly path: string;
  readonly method: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- a document is looked into, field by field
  readonly operation: any;
}
const operationsOf = (document: { paths: Record<string, Record<string, unknown>> }): Listed[] =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );

test("it is OpenAPI 3.1, needs no key, and names the API's own address", async () => {
  const got = await send(`${server().url}/openapi.json`, { headers: { authorization: "" } });
  expect(got).toMatchObject({
    status: 200,
    body: { openapi: "3.1.0", info: { title: "Remuda", version: "0.1.0" }, security: [{ key: [] }] },
  });
  expect(got.body.components.securitySchemes).toEqual({ key: { type: "http", scheme: "bearer" } });
});

test("it has every route of the server and no other", async () => {
  const routes: string[] = [];
  const prepare = (app: {
    addHook: (
      name: "onRoute",
      hook: (route: { method: string | string[]; url: string; schema?: { hide?: boolean } }) => void,
    ) => unknown;
  }): void => {
    app.addHook("onRoute", ({ method, url, schema }) => {
      if (!schema?.hide && method !== "HEAD")
        routes.push(...[method].flat().map((one) => `${one} ${url.replaceAll(/:(\w+)/g, "{$1}")}`));
    });
  };
  const app = makeApp(httpOptions, makeDeps(), {
    state: { draining: false, closing: false },
    prepare: prepare as never,
  });
  await app.ready();
  await app.close();
  const listed = operationsOf(await documentOf()).map(
    ({ method, path }) => `${method.toUpperCase()} ${path}`,
  );
  expect(listed.sort()).toEqual(routes.sort());
  expect(listed.length).toBe(88);
});

test("every reference resolves and every operation has a name of its own", async () => {
  const document = await documentOf();
  const refs = [...nodesOf(document)].map((node) => node["$ref"]).filter((ref) => typeof ref === "string");
  expect(refs.length).toBeGreaterThan(50);
  for (const ref of refs) {
    const target = ref
      .split("/")
      .slice(1)
      .reduce((node: unknown, part) => (node as Node | undefined)?.[part], document);
    expect(target, ref).toBeDefined();
  }
  const ids = operationsOf(document).map(({ operation }) => operation.operationId);
  expect(new Set(ids).size).toBe(ids.length);
});

const errorContent = JSON.stringify({
  "application/json": { schema: { $ref: "#/components/schemas/Error" } },
});

test("every operation has a summary, a tag, its path's parameters, and a described reply of each status it declares", async () => {
  for (const { path, method, operation } of operationsOf(await documentOf())) {
    const where = `${method} ${path}`;
    expect(operation, where).toMatchObject({ summary: expect.any(String), tags: [expect.any(String)] });
    const inPath = (operation.parameters ?? []).filter(
      (one: { in: string; required: boolean }) => one.in === "path" && one.required,
    );
    expect(
      inPath.map((one: { name: string }) => `{${one.name}}`),
      where,
    ).toEqual(path.match(/\{\w+\}/g) ?? []);
    const replies = Object.entries<Node>(operation.responses);
    for (const [status, reply] of replies)
      expect(reply["description"], `${where} ${status}`).toEqual(expect.any(String));
    const failures = replies.filter(([status]) => Number(status) >= 400).map(([, reply]) => reply["content"]);
    expect(new Set(failures.map((content) => JSON.stringify(content))), where).toEqual(
      new Set([errorContent]),
    );
    expect(operation.responses["204"]?.content, where).toBeUndefined();
  }
});

test("bodies of which nothing is required may be left out, and tags are sent as a deep object", async () => {
  const { paths } = await documentOf();
  expect(paths["/browser_pools"].post.requestBody.required).toBe(true);
  expect(paths["/browser_pools/{id_or_name}/release"].post.requestBody.required).toBe(true);
  expect(paths["/browser_pools/{id_or_name}/acquire"].post.requestBody.required).toBe(false);
  const tags = paths["/browsers"].get.parameters.find((one: { name: string }) => one.name === "tags");
  expect(tags).toMatchObject({ in: "query", style: "deepObject", explode: true, required: false });
});

test("what the server answers is what the document says it does", async () => {
  const document = await documentOf();
  const ajv = new Ajv2020({ strict: false });
  addFormats.default(ajv);
  ajv.addSchema(document, "api");
  const asked: readonly [string, string, unknown?][] = [
    ["get", "/browser_pools"],
    ["post", "/browser_pools", { size: 1 }],
    ["get", "/browser_pools/{id_or_name}"],
    ["patch", "/browser_pools/{id_or_name}", {}],
    ["get", "/browser_pools/{id_or_name}/browsers"],
    ["post", "/browser_pools/{id_or_name}/acquire", {}],
    ["get", "/browsers"],
    ["post", "/browsers", {}],
    ["get", "/browsers/{id_or_name}"],
    ["patch", "/browsers/{id_or_name}", {}],
    ["get", "/proxies"],
    ["post", "/proxies", { type: "custom" }],
    ["get", "/proxies/{id}"],
    ["patch", "/proxies/{id}", { name: "x" }],
    ["post", "/proxies/{id}/check", {}],
    ["post", "/browsers/{id_or_name}/curl", { url: "http://a.example/" }],
    ["get", "/profiles"],
    ["post", "/profiles", {}],
    ["get", "/profiles/{id_or_name}"],
    ["patch", "/profiles/{id_or_name}", { name: "x" }],
    ["get", "/auth/context"],
    ["get", "/audit-logs/export/destinations"],
    ["get", "/audit-logs/export/destinations/{id}"],
    ["patch", "/audit-logs/export/destinations/{id}", {}],
    ["post", "/audit-logs/export/destinations/{id}/test"],
    ["get", "/healthz"],
    ["get", "/readyz"],
    ["post", "/browser_pools", { size: 0 }],
    ["get", "/browsers?limit=x"],
  ];
  for (const [method, path, body] of asked) {
    const got = await send(`${server().url}${path.replace(/\{\w+\}/, "herd")}`, {
      method: method.toUpperCase(),
      body,
    });
    const schema =
      document.paths[path.split("?")[0] ?? ""][method].responses[got.status].content["application/json"]
        .schema;
    const fits = ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"api#/')));
    expect(fits(got.body), `${method} ${path}: ${ajv.errorsText(fits.errors)}`).toBe(true);
  }
});

test("the headers of a trace stand at the calls that read them, with their bounds, and none is required", async () => {
  const document = await documentOf();
  const operations = Object.entries<Record<string, { parameters?: { in: string; name: string }[] }>>(
    document.paths,
  ).flatMap(([path, methods]) => Object.entries(methods).map(([method, said]) => ({ path, method, said })));
  const headers = operations.flatMap(({ path, method, said: { parameters = [] } }) =>
    parameters
      .filter((parameter) => parameter.in === "header")
      .map((parameter) => [`${method} ${path}`, parameter]),
  );
  const described = (name: string, maxLength: number) =>
    expect.objectContaining({ name, required: false, schema: { type: "string", maxLength } });
  const both = [described("traceparent", 256), described("tracestate", 512)];
  expect(headers).toEqual(
    ["post /browser_pools/{id_or_name}/acquire", "post /browsers"].flatMap((call) =>
      both.map((parameter) => [call, parameter]),
    ),
  );
});

test("the page to browse it is served whole from here", async () => {
  const page = await send(`${server().url}/docs`, { headers: { authorization: "" } });
  expect(page.status).toBe(200);
  const files = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, file = ""]) => file);
  expect(files.length).toBeGreaterThan(4);
  for (const file of files) {
    expect(file).toMatch(/^\/docs\//);
    expect((await send(`${server().url}${file}`)).status, file).toBe(200);
  }
  expect((await send(`${server().url}/docs/json`)).body.openapi).toBe("3.1.0");
});
