import { timestampOf } from "../../base/clock.js";
import { type Proxy, ProxyCheckBody, ProxyCreate, ProxyPatch } from "../../registry/proxies/proxy.js";
import type { App } from "../bare-app.js";
import { callerOf, type InProject } from "../admission/caller.js";
import { sendRefusal, sendRemoved } from "../errors.js";
import { pagingOf } from "../query.js";
import { operations } from "../schemas/operations.js";
import type { ProxyReply } from "../schemas/replies.js";
import { NoFields, ProxyQuery, ProxyRefParams } from "../schemas/requests.js";
import { pagingHeaders } from "../views/views.js";

interface Deps {
  readonly inProject: InProject;
}

/** docs/egress.md#proxies; proxies go by their ids only. */
export function addProxies(app: App, deps: Deps): void {
  addReads(app, deps);
  addWrites(app, deps);
}

function addReads(app: App, { inProject }: Deps): void {
  app.get(
    "/proxies",
    { schema: { ...operations.listProxies, querystring: ProxyQuery } },
    async (request, reply) => {
      const asked = pagingOf(request.query, request);
      const page = await inProject(request).proxies.list(asked);
      return reply.headers(pagingHeaders(page, asked)).send(page.items.map(proxyView));
    },
  );

  app.get(
    "/proxies/:id",
    { schema: { ...operations.getProxy, params: ProxyRefParams } },
    async (request, reply) => {
      const { params } = request;
      const got = await inProject(request).proxies.get(params.id);
      return got.kind === "refused" ? sendRefusal(reply, got) : reply.send(proxyView(got.value));
    },
  );
}

function addWrites(app: App, { inProject }: Deps): void {
  app.post(
    "/proxies",
    { schema: { ...operations.createProxy, body: ProxyCreate } },
    async (request, reply) => {
      const { body } = request;
      const made = await inProject(request).proxies.create(body);
      return made.kind === "refused" ? sendRefusal(reply, made) : reply.code(201).send(proxyView(made.value));
    },
  );

  app.patch(
    "/proxies/:id",
    { schema: { ...operations.updateProxy, params: ProxyRefParams, body: ProxyPatch } },
    async (request, reply) => {
      const { params, body } = request;
      const made = await inProject(request).proxies.rename(params.id, body);
      return made.kind === "refused" ? sendRefusal(reply, made) : reply.send(proxyView(made.value));
    },
  );

  app.delete(
    "/proxies/:id",
    { schema: { ...operations.deleteProxy, params: ProxyRefParams, body: NoFields } },
    async (request, reply) => {
      const got = await inProject(request).proxies.remove(request.params.id);
      return sendRemoved(reply, got, callerOf(request, reply));
    },
  );

  app.post(
    "/proxies/:id/check",
    { schema: { ...operations.checkProxy, params: ProxyRefParams, body: ProxyCheckBody } },
    async (request, reply) => {
      const got = await inProject(request).proxies.check(
        request.params.id,
        request.body,
        callerOf(request, reply).gone,
      );
      return got.kind === "refused" ? sendRefusal(reply, got) : reply.send(proxyView(got.value));
    },
  );
}

/** A proxy as docs/egress.md#proxies has it: of its secrets only that there are some. */
const proxyView = ({ id, name, protocol, bypassHosts, checked, ...own }: Proxy): ProxyReply => ({
  id,
  ...(name !== undefined && { name }),
  type: "custom",
  protocol,
  bypass_hosts: [...bypassHosts],
  config: {
    host: own.host,
    port: own.port,
    ...(own.username !== undefined && { username: own.username }),
    has_password: own.hasPassword,
    has_ca_bundle: own.hasCaBundle,
  },
  ...(checked && { status: checked.status, last_checked: timestampOf(checked.at) }),
  ...(checked?.ipAddress !== undefined && { ip_address: checked.ipAddress }),
});
