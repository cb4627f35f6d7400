import { afterEach, beforeEach, expect, test } from "vitest";
import { openSite, type Site } from "../../support/browser/chromium-site.js";
import { until } from "../../support/browser/chromium-until.js";
import { type DaemonClient, type Lease, startDaemon } from "../../support/daemon/daemon.js";
import { spawnDaemon } from "../../support/daemon/daemon-process.js";
import { DaemonPlace } from "../../support/daemon/daemon-settings.js";
import { send } from "../../support/http/http-server.js";
import { startRedis } from "../../support/store/redis.js";
import { type FollowedEvent, StreamFollower } from "../../support/telemetry/stream-follower.js";

let site: Site;
beforeEach(async () => {
  site = await openSite();
});
afterEach(() => site.close());

const create = async (daemon: DaemonClient): Promise<Lease> => {
  const wanted = { headless: true, telemetry: { enabled: true } };
  const { body, text } = await daemon.call("POST /browsers", wanted);
  if (!body.cdp_ws_url) throw new Error(`no session: ${text}`);
  return body as Lease;
};
const callsIn = (told: readonly FollowedEvent[]): FollowedEvent["event"][] =>
  told.map(({ event }) => event).filter(({ type }) => type === "api_call");

/** What one request was answered, and what is to be told of it. */
interface Asked {
  readonly status: number;
  readonly request: unknown;
}
const toldOf = ({ status, request }: Asked): unknown => ({
  type: "api_call",
  category: "control",
  source: { kind: "kernel_api" },
  data: { request_id: request, operation_id: "curlBrowser", status, duration_ms: expect.any(Number) },
  truncated: false,
});

/**
 * A request that is answered, one that the rules deny, and one that is no request, by the API of the daemons
 * and by the browser's own address there: each is told once, in the stream.
 */
async function expectTold(daemons: readonly DaemonClient[]): Promise<void> {
  const [daemon, node] = [daemons[0], daemons.at(-1)];
  if (!daemon || !node) throw new Error("no daemon");
  const lease = await create(daemon);
  const follower = new StreamFollower([daemon], lease.session_id);
  const own = lease.cdp_ws_url.replace(/^ws:\/\/[^/]+/, "").replace("/cdp?", "/curl?");
  const asks = [
    (body: object) => daemon.call(`POST /browsers/${lease.session_id}/curl`, body),
    ...daemons.map(
      ({ url }) =>
        (body: object) =>
          send(url + own, { method: "POST", body, headers: { authorization: "" } }),
    ),
  ];
  const asked: Asked[] = [];
  for (const ask of asks)
    for (const [url, status, code] of [
      [site.origin, 200, undefined],
      [`${node.url}/healthz`, 400, "egress_denied"],
      ["nonsense", 400, "bad_request"],
    ] as const) {
      const got = await ask({ url });
      expect([got.status, got.body.code]).toEqual([status, code]);
      asked.push({ status, request: got.headers.get("x-request-id") });
    }
  await until("all are told", () => callsIn(follower.told).length >= asked.length);
  await daemon.call(`DELETE /browsers/${lease.session_id}`);
  await follower.over;
  const byRequest = (events: readonly FollowedEvent["event"][]) =>
    events.toSorted((one, other) => ids.indexOf(idOf(one)) - ids.indexOf(idOf(other)));
  const ids = asked.map(({ request }) => request);
  const idOf = ({ data }: FollowedEvent["event"]): unknown => data["request_id"];
  expect(byRequest(callsIn(follower.told))).toEqual(
    asked.map((each) => ({ ...(toldOf(each) as object), ts: expect.any(Number) })),
  );
}

test("a request through the browser's way out is told with what it was answered, also one that was denied", async () => {
  const daemon = await startDaemon();
  await expectTold([daemon]);
  await daemon.stop();
});

test("one that a control relays to the browser's node is told once, under the same id", async () => {
  const redis = await startRedis();
  const placed = (role: "control" | "node", file: object = {}) =>
    spawnDaemon(
      new DaemonPlace({ role, redisUrl: redis.url, file: { drain: { limit_seconds: 0 }, ...file } }),
    );
  const [control, node] = [await placed("control"), await placed("node", { node: { id: "a" } })];
  await expectTold([control, node]);
  await node.stop();
  await control.stop();
  await redis.stop();
});
