import { expect, test } from "vitest";
import { RemudaError } from "../../src/base/errors.js";
import { acceptedBodies } from "../support/access/accepted-bodies.js";
import { send, sharedServer } from "../support/http/http-server.js";
import { type ListedRoute, listRoutes } from "../support/http/listed-routes.js";
import { type OpenApi } from "../support/http/openapi-inputs.js";
import { readDocument } from "../support/http/openapi-document.js";

const recorded: string[] = [];
const server = sharedServer(
  {},
  {
    audit: {
      record: ({ method, route, status }) => void recorded.push(`${method} ${route} ${status}`),
      recordNow: async () => {},
      begin: async () => {
        throw new RemudaError("audit_unavailable");
      },
    },
  },
);

/**
 * Routes that change or use browsers and what they are made of, and no more than that. Whoever adds one that
 * changes who may do what, or where secrets and the log go, makes it `recordedFirst` instead.
 */
const ofBrowsers: ReadonlySet<string> = new Set([
  "POST /browser_pools",
  "PATCH /browser_pools/{id_or_name}",
  "DELETE /browser_pools/{id_or_name}",
  "POST /browser_pools/{id_or_name}/acquire",
  "POST /browser_pools/{id_or_name}/release",
  "POST /browser_pools/{id_or_name}/flush",
  "POST /browsers",
  "PATCH /browsers/{id_or_name}",
  "DELETE /browsers/{id_or_name}",
  "POST /browsers/{id_or_name}/curl",
  "POST /browsers/{id_or_name}/extensions",
  "POST /browsers/{id_or_name}/telemetry/captcha_solve_results",
  "POST /extensions",
  "DELETE /extensions/{id_or_name}",
  "POST /profiles",
  "PATCH /profiles/{id_or_name}",
  "DELETE /profiles/{id_or_name}",
  "POST /proxies",
  "PATCH /proxies/{id}",
  "DELETE /proxies/{id}",
  "POST /proxies/{id}/check",
  // A trial puts an object and removes it again; nothing of the destination is changed.
  "POST /audit-logs/export/destinations/{id}/test",
]);
const nameOf = ({ method, path }: Pick<ListedRoute, "method" | "path">): string => `${method} ${path}`;
const changing = async (): Promise<readonly ListedRoute[]> =>
  (await listRoutes()).filter(({ method }) => method !== "GET");

test("every route that changes anything but browsers and their parts is on record first", async () => {
  const routes = await changing();
  const later = routes.filter(({ audit }) => audit !== "first").map(nameOf);
  expect(later.toSorted()).toEqual([...ofBrowsers].toSorted());
  expect(routes.length - later.length).toBe(27);
});

const bodies: Readonly<Record<string, object>> = { ...acceptedBodies, createProject: { name: "x" } };

/** The body that a route is asked with, also by its older path. */
async function bodyOf({ method, path }: ListedRoute): Promise<object> {
  const { paths } = await readDocument<OpenApi>(server().url);
  const documented = paths[path] ?? paths[`/org${path}`] ?? {};
  const id = documented[method.toLowerCase()]?.operationId ?? "";
  return bodies[id] ?? {};
}

test("where the log takes nothing more each of them is refused, by its older path too, and does nothing", async () => {
  const first = (await changing()).filter(({ audit }) => audit === "first");
  for (const route of first) {
    recorded.length = 0;
    const { method, path } = route;
    const url = server().url + path.replaceAll(/\{\w+\}/g, "mine");
    const got = await send(url, { method, body: await bodyOf(route) });
    const told = { route: nameOf(route), status: got.status, code: got.body.code };
    expect(told).toEqual({ route: nameOf(route), status: 503, code: "audit_unavailable" });
    expect(server().operations.calls, nameOf(route)).toEqual([]);
    expect(recorded).toEqual([`${nameOf(route)} 503`]);
  }
});

const ofTheLog = ["audit_unavailable", "audit_unconfirmed"];
test.each(ofTheLog)("the document tells of %s at each of them, and at no other operation", async (code) => {
  const { paths } = await readDocument<{ paths: Record<string, Record<string, object>> }>(server().url);
  const told = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, operation]) => JSON.stringify(operation).includes(code))
      .map(([method]) => `${method.toUpperCase()} ${path}`),
  );
  const first = (await listRoutes()).filter(({ audit, isHidden }) => audit === "first" && !isHidden);
  expect(told.toSorted()).toEqual(first.map(nameOf).toSorted());
});
