import { chromium as playwright } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import { type Daemon, startDaemon } from "../../support/daemon/daemon.js";

let daemon: Daemon;
beforeAll(async () => {
  daemon = await startDaemon();
});
afterAll(() => daemon.stop());

const on = { enabled: true };
const off = { enabled: false };
const usual = { control: on, connection: on, system: on, captcha: on };

interface Session {
  readonly session_id: string;
  readonly lease_id: string;
  readonly cdp_ws_url?: string;
  readonly telemetry?: { readonly browser: Record<string, { readonly enabled: boolean }> };
}
const acquire = async (pool: string, body: object = {}): Promise<Session> =>
  (await daemon.call(`POST /browser_pools/${pool}/acquire`, { acquire_timeout_seconds: 50, ...body })).body;
const release = (pool: string, { session_id }: Session) =>
  daemon.call(`POST /browser_pools/${pool}/release`, { session_id });
const patch = ({ session_id }: Session, body: object) => daemon.call(`PATCH /browsers/${session_id}`, body);
const eventsOf = async ({ session_id }: Session, query = "", headers = {}) =>
  await daemon.call(`GET /browsers/${session_id}/telemetry/events${query}`, undefined, headers);
interface Told {
  readonly seq: number;
  readonly event: { readonly type: string; readonly data: { readonly operation_id?: string } };
}
const operationsOf = (told: readonly Told[]) =>
  told.filter(({ event }) => event.type === "platform_api_call").map(({ event }) => event.data.operation_id);
/** The calls among a session's events, once there are so many. */
const callsWhen = (session: Session, count: number, headers = {}) =>
  until("calls are told", async () => {
    const { body } = await eventsOf(session, "?category=platform", headers);
    return Array.isArray(body) && body.length >= count ? operationsOf(body as Told[]) : undefined;
  });

test("a lease captures what its pool and its acquire say; the next holder has the pool's, and sees nothing of the former", async () => {
  await daemon.makePool({ name: "told", telemetry: { enabled: true } });
  const first = await acquire("told", { telemetry: { browser: { platform: on, system: off } } });
  expect(first.telemetry?.browser).toEqual({ ...usual, platform: on, system: off });
  expect((await patch(first, { tags: { a: "b" } })).status).toBe(200);
  expect(await callsWhen(first, 1)).toEqual(["updateBrowser"]);
  expect((await release("told", first)).status).toBe(204);
  expect(await callsWhen(first, 2)).toEqual(["updateBrowser", "releaseBrowser"]);

  const second = await acquire("told");
  expect(second.session_id).toBe(first.session_id);
  expect(second.telemetry?.browser).toEqual(usual);
  expect((await eventsOf(second)).body).toEqual([]);
  // The former holder knows its lease, and reads on in what it had recorded.
  const former = { "x-remuda-lease-id": first.lease_id };
  expect(await callsWhen(first, 2, former)).toEqual(["updateBrowser", "releaseBrowser"]);
  expect(await eventsOf(second, "", { "x-remuda-lease-id": "0".repeat(24) })).toMatchObject({
    status: 409,
    body: { code: "lease_superseded" },
  });
  expect((await patch(second, { telemetry: { browser: { platform: on } } })).body.telemetry.browser).toEqual({
    ...usual,
    platform: on,
  });
  expect((await patch(second, { telemetry: { enabled: false } })).body).not.toHaveProperty("telemetry");
  await release("told", second);
  const third = await acquire("told");
  expect(third.telemetry?.browser).toEqual(usual);
  await release("told", third);
});

test("a pool's change counts for browsers that are launched after it", async () => {
  await daemon.makePool({ name: "changed" });
  await daemon.call("PATCH /browser_pools/changed", { telemetry: { enabled: true } });
  const before = await acquire("changed");
  expect(before).not.toHaveProperty("telemetry");
  await daemon.call("POST /browser_pools/changed/release", { session_id: before.session_id, reuse: false });
  const after = await acquire("changed");
  expect(after.telemetry?.browser).toEqual(usual);
  await release("changed", after);
});

test("categories beside enabled false are refused, wherever they are sent, and change nothing", async () => {
  const wrong = { telemetry: { enabled: false, browser: { page: on } } };
  await daemon.makePool({ name: "wrong" });
  const session = await acquire("wrong", { telemetry: { enabled: true } });
  const answers = [
    await daemon.call("POST /browser_pools", { size: 1, ...wrong }),
    await daemon.call("PATCH /browser_pools/wrong", wrong),
    await daemon.call("POST /browser_pools/wrong/acquire", wrong),
    await daemon.call("POST /browsers", wrong),
    await patch(session, wrong),
  ];
  expect(answers.map(({ status, body }) => [status, body.details[0].message])).toEqual(
    answers.map(() => [400, "telemetry: enabled false cannot be combined with categories"]),
  );
  expect((await daemon.call(`GET /browsers/${session.session_id}`)).body.telemetry.browser).toEqual(usual);
  await release("wrong", session);
});

test("the official client follows a session on demand from its first event to its end, and pages through it afterwards", async () => {
  const kernel = daemon.kernel();
  const { session_id: id } = await kernel.browsers.create({
    headless: true,
    telemetry: { browser: { platform: on } } as never,
  });
  const stream = await kernel.browsers.telemetry.stream(id, { replay: "all" });
  const told: Told[] = [];
  const reading = (async () => {
    for await (const each of stream) told.push(each as unknown as Told);
  })();
  for (let change = 0; change < 3; change += 1)
    await kernel.browsers.update(id, { tags: { at: `${change}` } });
  await until("changes are told", async () => (operationsOf(told).length === 3 ? true : undefined));
  await kernel.browsers.deleteByID(id);
  await reading;
  expect(told.map(({ seq }) => seq)).toEqual(told.map((_, at) => at + 1));

  const calls = [...Array<string>(3).fill("updateBrowser"), "deleteBrowser"];
  expect(await callsWhen({ session_id: id, lease_id: "" }, 4)).toEqual(calls);
  const paged: Told[] = [];
  for await (const each of kernel.browsers.telemetry.events(id, { limit: 2 }))
    paged.push(each as unknown as Told);
  expect(operationsOf(paged)).toEqual(calls);
  // On a busy machine the last may be stored when nobody follows any more.
  expect(paged.slice(0, told.length)).toEqual(told);
  await expect(kernel.browsers.telemetry.stream(id)).rejects.toMatchObject({ status: 404 });
});

test("a stream resumes after the event that its reader names, opens silently where nothing is captured, and says what it is", async () => {
  const quiet = (await daemon.call("POST /browsers", { headless: true })).body as Session;
  const reader = new AbortController();
  const open = (session: Session, query = "", headers: Record<string, string> = {}) =>
    fetch(`${daemon.url}/browsers/${session.session_id}/telemetry/stream${query}`, {
      headers: { authorization: `Bearer ${daemon.apiKey}`, ...headers },
      signal: reader.signal,
    });
  const silent = await open(quiet);
  expect([
    silent.status,
    silent.headers.get("content-type"),
    silent.headers.get("x-sse-content-type"),
  ]).toEqual([200, "text/event-stream", "application/json"]);
  await patch(quiet, { telemetry: { browser: { platform: on } } });
  for (let change = 0; change < 4; change += 1) await patch(quiet, { tags: { at: `${change}` } });
  await callsWhen(quiet, 4);
  const resumed = await open(quiet, "?replay=all&type=platform_api_call", { "last-event-id": "2" });
  const lines: string[] = [];
  const decoder = new TextDecoder();
  for await (const bytes of resumed.body ?? []) {
    lines.push(...decoder.decode(bytes).split("\n\n"));
    if (lines.filter((line) => line.startsWith("id: ")).length >= 2) break;
  }
  const frames = lines.filter((line) => line.startsWith("id: "));
  expect(frames[0]).toMatch(/^id: 3\ndata: \{"seq":3,"event":\{"ts":\d{16},"type":"platform_api_call",/);
  expect(frames[1]).toMatch(/^id: 4\n/);
  reader.abort();
  await daemon.call(`DELETE /browsers/${quiet.session_id}`);
});

test("what a page does is told to its holder while the lease asks for it, and to nobody after", async () => {
  await daemon.makePool({ name: "watched" });
  const session = await acquire("watched", {
    telemetry: { browser: { page: on, console: on, screenshot: on } },
  });
  const client = await playwright.connectOverCDP(session.cdp_ws_url ?? "");
  const [page] = client.contexts()[0]?.pages() ?? [];
  const typesOf = async (category: string): Promise<string[]> => {
    const { body } = await eventsOf(session, `?category=${category}&limit=100`);
    return (body as Told[]).map(({ event }) => event.type);
  };
  await until("the console is told", async () => {
    await page?.evaluate(`console.error("told")`);
    return (await typesOf("console")).includes("console_error");
  });
  const hasPicture = async (): Promise<boolean> => (await typesOf("screenshot")).length > 0;
  await until("a picture of the page at rest", async () => {
    await page?.goto("data:text/html,<title>A page</title><p>Some text</p>");
    // One that takes over 5 s, as on a crowded machine, is left out.
    return await until("this picture", hasPicture, 15_000).catch(() => false);
  });
  expect(await typesOf("page")).toContain("page_navigation_settled");
  expect(await typesOf("page")).toContain("page_load");
  await client.close();
  await release("watched", session);

  const next = await acquire("watched");
  const after = await playwright.connectOverCDP(next.cdp_ws_url ?? "");
  await after.contexts()[0]?.pages()[0]?.evaluate(`console.error("not told")`);
  await after.close();
  // Whatever it had told would stand before this.
  await patch(next, { telemetry: { browser: { platform: on } } });
  await patch(next, { tags: { a: "b" } });
  await callsWhen(next, 1);
  const types = ((await eventsOf(next)).body as Told[]).map(({ event }) => event.type);
  expect(new Set(types)).toEqual(new Set(["platform_api_call"]));
  const former = { "x-remuda-lease-id": session.lease_id };
  expect(JSON.stringify((await eventsOf(session, "?category=console&limit=100", former)).body)).not.toContain(
    "not told",
  );
  await release("watched", next);
});

test("a solver outside reports captchas to the session that captures them, and to no later holder of its browser", async () => {
  await daemon.makePool({ name: "solved", telemetry: { enabled: true } });
  const session = await acquire("solved");
  const path = `POST /browsers/${session.session_id}/telemetry/captcha_solve_results`;
  const result = {
    captcha_type: "hcaptcha",
    status: "timeout",
    duration_ms: 120_000,
    website_host: "a.example",
  };
  expect((await daemon.call(path, result)).status).toBe(204);
  const told = await until("it is told", async () => {
    const { body } = await eventsOf(session, "?category=captcha");
    return body.length > 0 ? (body as unknown[]) : undefined;
  });
  expect(told).toMatchObject([
    {
      event: {
        type: "captcha_solve_result",
        category: "captcha",
        source: { kind: "kernel_api" },
        data: result,
        truncated: false,
      },
    },
  ]);

  expect((await patch(session, { telemetry: { browser: { captcha: off } } })).status).toBe(200);
  expect((await daemon.call(path, { ...result, task_id: "while-off" })).status).toBe(204);
  expect((await release("solved", session)).status).toBe(204);
  const former = { "x-remuda-lease-id": session.lease_id };
  const next = await acquire("solved");
  expect(next.session_id).toBe(session.session_id);
  expect((await daemon.call(path, result, former)).status).toBe(409);
  expect((await daemon.call(path, { ...result, task_id: "of-the-next" })).status).toBe(204);
  await until("the next is told of its own", async () => {
    const { body } = await eventsOf(next, "?category=captcha");
    return body.length > 0 ? body : undefined;
  });
  expect((await eventsOf(session, "?category=captcha", former)).body).toEqual(told);
});
