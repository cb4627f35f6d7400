import type { Static } from "typebox";
import { AcquireBody, PoolCreate, PoolPatch, ReleaseBody } from "../../spec/bodies.js";
import type { PoolListQuery } from "../../spec/paging.js";
import type { App } from "../bare-app.js";
import { callerOf, type InProject } from "../admission/caller.js";
import { sendDone, sendRefusal, sendRemoved } from "../errors.js";
import { pagingOf } from "../query.js";
import { parsePoolRef } from "../refs.js";
import { operations } from "../schemas/operations.js";
import { NoFields, PoolDelete, PoolQuery, PoolRef } from "../schemas/requests.js";
import { settleWithReply } from "../settle.js";
import { pagingHeaders, poolBrowserView, poolView, sessionView, type ViewContext } from "../views/views.js";

interface Deps {
  readonly inProject: InProject;
  readonly context: ViewContext;
  readonly policyBodyBytes: number;
}

export function addPools(app: App, deps: Deps): void {
  addReads(app, deps);
  addWrites(app, deps);
  addLeases(app, deps);
}

function addReads(app: App, { inProject, context }: Deps): void {
  app.get(
    "/browser_pools",
    { schema: { ...operations.listBrowserPools, querystring: PoolQuery } },
    async (request, reply) => {
      const { query } = request;
      const asked = listQueryOf(query);
      const page = await inProject(request).pools.list(asked);
      return reply
        .headers(pagingHeaders(page, asked))
        .send(page.items.map((item) => poolView(item, context)));
    },
  );

  app.get(
    "/browser_pools/:id_or_name",
    { schema: { ...operations.getBrowserPool, params: PoolRef } },
    async (request, reply) => {
      const { params } = request;
      const got = await inProject(request).pools.get(parsePoolRef(params));
      return got.kind === "refused" ? sendRefusal(reply, got) : reply.send(poolView(got.value, context));
    },
  );

  app.get(
    "/browser_pools/:id_or_name/browsers",
    { schema: { ...operations.listPoolBrowsers, params: PoolRef } },
    async (request, reply) => {
      const { params } = request;
      const got = await inProject(request).pools.browsers(parsePoolRef(params));
      return got.kind === "refused" ? sendRefusal(reply, got) : reply.send(got.value.map(poolBrowserView));
    },
  );

  app.get(
    "/browser_pools/:id_or_name/flight_recordings",
    { schema: { ...operations.listPoolFlightRecordings, params: PoolRef } },
    async (request, reply) => {
      const got = await inProject(request).pools.recordings(parsePoolRef(request.params));
      return got.kind === "refused" ? sendRefusal(reply, got) : reply.send([...got.value]);
    },
  );
}

function addWrites(app: App, { inProject, context, policyBodyBytes }: Deps): void {
  app.post(
    "/browser_pools",
    { bodyLimit: policyBodyBytes, schema: { ...operations.createBrowserPool, body: PoolCreate } },
    async (request, reply) => {
      const made = await inProject(request).pools.create(request.body, callerOf(request, reply));
      return made.kind === "refused"
        ? sendRefusal(reply, made)
        : reply.code(201).send(poolView(made.value, context));
    },
  );

  app.patch(
    "/browser_pools/:id_or_name",
    {
      bodyLimit: policyBodyBytes,
      schema: { ...operations.updateBrowserPool, params: PoolRef, body: PoolPatch },
    },
    async (request, reply) => {
      const made = await inProject(request).pools.update(
        parsePoolRef(request.params),
        request.body,
        callerOf(request, reply),
      );
      return made.kind === "refused" ? sendRefusal(reply, made) : reply.send(poolView(made.value, context));
    },
  );

  app.delete(
    "/browser_pools/:id_or_name",
    {
      config: { removes: "pools" },
      schema: { ...operations.deleteBrowserPool, params: PoolRef, body: PoolDelete },
    },
    async (request, reply) => {
      const { force = false } = request.body;
      const caller = callerOf(request, reply);
      return sendRemoved(
        reply,
        await inProject(request).pools.remove(parsePoolRef(request.params), { force }, caller),
        caller,
      );
    },
  );
}

function addLeases(app: App, { inProject, context }: Deps): void {
  app.post(
    "/browser_pools/:id_or_name/acquire",
    {
      config: { mayDefer: true },
      schema: { ...operations.acquireBrowser, params: PoolRef, body: AcquireBody },
    },
    async (request, reply) => {
      const got = await inProject(request).pools.acquire(
        parsePoolRef(request.params),
        request.body,
        callerOf(request, reply),
      );
      if (got.kind === "refused") return sendRefusal(reply, got);
      if (got.kind === "timed-out") return reply.code(204).header("retry-after", "0").send();
      settleWithReply(reply, got);
      return reply.send(sessionView(got.session, context));
    },
  );

  app.post(
    "/browser_pools/:id_or_name/release",
    {
      config: { mayDefer: true },
      schema: { ...operations.releaseBrowser, params: PoolRef, body: ReleaseBody },
    },
    async (request, reply) =>
      sendDone(
        reply,
        await inProject(request).pools.release(
          parsePoolRef(request.params),
          request.body,
          callerOf(request, reply),
        ),
      ),
  );

  app.post(
    "/browser_pools/:id_or_name/flush",
    { schema: { ...operations.flushBrowserPool, params: PoolRef, body: NoFields } },
    async (request, reply) =>
      sendDone(
        reply,
        await inProject(request).pools.flush(parsePoolRef(request.params), callerOf(request, reply)),
      ),
  );
}

const listQueryOf = ({ limit, offset, name, query, region }: Static<typeof PoolQuery>): PoolListQuery => ({
  ...pagingOf({ limit, offset }),
  ...(name !== undefined && { name }),
  ...(query !== undefined && { query }),
  ...(region !== undefined && { region }),
});
