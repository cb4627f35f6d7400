import { Readable } from "node:stream";
import type { Static } from "typebox";
import type { Millis } from "../../base/clock.js";
import type { Clock } from "../../base/clock.js";
import { telemetryCategories } from "../../spec/bodies.js";
import { CaptchaResult } from "../../spec/captcha-result.js";
import type { EventFilter, EventQuery, StoredEvent } from "../../telemetry/ports.js";
import type { StreamStart } from "../../telemetry/read-events.js";
import type { App } from "../bare-app.js";
import { callerOf, type InProject } from "../admission/caller.js";
import { sendDone, sendRefusal } from "../errors.js";
import { findInstant } from "../time.js";
import { InvalidInput } from "../invalid-input.js";
import { parseSessionRef } from "../refs.js";
import { operations } from "../schemas/operations.js";
import { EventsQuery, SessionRef, StreamQuery } from "../schemas/requests.js";
import { boundSendBuffer } from "../send-buffer.js";

interface Deps {
  readonly inProject: InProject;
  readonly clock: Clock;
}

export function addTelemetry(app: App, deps: Deps): void {
  addStream(app, deps);
  addHistory(app, deps);
  addReports(app, deps);
}

/** What the system keeps of a stream that nobody reads; Linux doubles it for its own needs. */
const unreadBytes = 128 * 1024;

/** docs/telemetry.md#reading */
function addStream(app: App, { inProject }: Deps): void {
  app.get(
    "/browsers/:id_or_name/telemetry/stream",
    {
      // A HEAD would open a stream to throw it away.
      exposeHeadRoute: false,
      config: { audit: "started" },
      schema: { ...operations.streamBrowserTelemetry, params: SessionRef, querystring: StreamQuery },
    },
    async (request, reply) => {
      const { query, headers, params } = request;
      const start = startOf(headers["last-event-id"], query.replay);
      const ask = { start, filter: { types: listOf(query.type), categories: [] } };
      const got = await inProject(request).events.stream(
        parseSessionRef(params),
        ask,
        callerOf(request, reply),
      );
      if (got.kind === "refused") return sendRefusal(reply, got);
      boundSendBuffer(reply.raw.socket, unreadBytes);
      return (
        reply
          .headers({ "x-sse-content-type": "application/json", "cache-control": "no-store" })
          // Proxies such as nginx would hold events back to fill their buffers.
          .header("x-accel-buffering", "no")
          .type("text/event-stream")
          .send(Readable.from(frames(got.value), { highWaterMark: 1 }))
      );
    },
  );
}

function addHistory(app: App, { inProject, clock }: Deps): void {
  app.get(
    "/browsers/:id_or_name/telemetry/events",
    {
      exposeHeadRoute: false,
      schema: { ...operations.listBrowserTelemetryEvents, params: SessionRef, querystring: EventsQuery },
    },
    async (request, reply) => {
      const query = eventQueryOf(request.query, clock.now());
      const got = await inProject(request).events.history(
        parseSessionRef(request.params),
        query,
        callerOf(request, reply),
      );
      if (got.kind === "refused") return sendRefusal(reply, got);
      const { events, next, hasMore } = got.value;
      return reply
        .headers({ "x-has-more": String(hasMore), "x-next-offset": String(hasMore ? next : 0) })
        .header("x-limit", query.limit)
        .type("application/json; charset=utf-8")
        .send(`[${events.map(envelopeOf).join(",")}]`);
    },
  );
}

/** docs/telemetry.md#captchas */
function addReports(app: App, { inProject }: Pick<Deps, "inProject">): void {
  app.post(
    "/browsers/:id_or_name/telemetry/captcha_solve_results",
    { schema: { ...operations.reportCaptchaSolveResult, params: SessionRef, body: CaptchaResult } },
    async (request, reply) =>
      sendDone(
        reply,
        await inProject(request).sessions.reportCaptcha(
          parseSessionRef(request.params),
          request.body,
          callerOf(request, reply),
        ),
      ),
  );
}

const envelopeOf = ({ seq, text }: StoredEvent): string => `{"seq":${seq},"event":${text}}`;

/** An event each, or a comment, which clients pass over (HTML Living Standard, "Server-sent events"). */
async function* frames(lists: AsyncGenerator<readonly StoredEvent[], void>): AsyncGenerator<string, void> {
  for await (const events of lists)
    yield events.length === 0
      ? ":\n\n"
      : events.map((event) => `id: ${event.seq}\ndata: ${envelopeOf(event)}\n\n`).join("");
}

/** `Last-Event-ID` goes before `replay`; 0 names no event, and an empty one is none. */
function startOf(lastEventId: string | string[] | undefined, replay: string | undefined): StreamStart {
  const id = [lastEventId].flat()[0];
  if (id === undefined || id === "") return replay === "all" ? "oldest" : "now";
  if (!/^\d{1,15}$/.test(id)) throw InvalidInput.of("Last-Event-ID", "must be the id of an event");
  const after = Number(id);
  return after === 0 ? "now" : { after };
}

const defaultSinceMs: Millis = 5 * 60_000;

function eventQueryOf(query: Static<typeof EventsQuery>, now: Millis): EventQuery {
  const { limit = 20, order = "asc", offset, since, until } = query;
  if (order === "desc" && since !== undefined)
    throw InvalidInput.of("since", "cannot be combined with order=desc");
  const cursor = offset === undefined || offset === "" ? undefined : cursorOf(offset);
  const from = order === "asc" && cursor === undefined ? sinceOf(since, now) : undefined;
  return {
    limit,
    order,
    filter: filterOf(query),
    ...(cursor !== undefined && { cursor }),
    ...from,
    ...(until !== undefined && { until: instantOf("until", until, now) }),
  };
}

function sinceOf(since: string | undefined, now: Millis): Pick<EventQuery, "since" | "sinceAgoMs"> {
  if (since !== undefined && !duration.test(since)) return { since: instantOf("since", since, now) };
  const agoMs = since === undefined ? defaultSinceMs : durationOf(since);
  return { since: Math.floor(now - agoMs), sinceAgoMs: agoMs };
}

/** 0, which the official client sends for the first page of other lists, names no event. */
function cursorOf(text: string): number | undefined {
  if (!/^\d{1,15}$/.test(text)) throw InvalidInput.of("offset", "must be what X-Next-Offset said");
  return Number(text) || undefined;
}

const unitsMs: Readonly<Record<string, Millis>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
const duration = /^(?:\d+(?:\.\d+)?(?:ms|s|m|h))+$/;

/** RFC 3339, or how long ago: `5m`, `1h30m`. */
function instantOf(field: string, text: string, now: Millis): Millis {
  if (duration.test(text)) return Math.floor(now - durationOf(text));
  const at = findInstant(text);
  if (at === undefined)
    throw InvalidInput.of(field, "must be an instant such as 2026-01-31T12:00:00Z, or how long ago, as 5m");
  return at;
}

const durationOf = (text: string): Millis =>
  [...text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g)].reduce(
    (sum, [, number, unit = "s"]) => sum + Number(number) * (unitsMs[unit] ?? 0),
    0,
  );

const known: ReadonlySet<string> = new Set([...telemetryCategories, "monitor"]);

function filterOf({ category, type }: Pick<Static<typeof EventsQuery>, "category" | "type">): EventFilter {
  const categories = listOf(category);
  const unknown = categories.find((each) => !known.has(each));
  if (unknown !== undefined) throw InvalidInput.of("category", `there is no category ${unknown}`);
  return { types: listOf(type), categories };
}

const mostValues = 50;

/** Separated by commas, or the parameter repeated. */
function listOf(values: string | readonly string[] | undefined): readonly string[] {
  const list = [values ?? []].flat().flatMap((value) => value.split(","));
  if (list.length > mostValues) throw InvalidInput.of("type", `must have at most ${mostValues} values`);
  return list;
}
