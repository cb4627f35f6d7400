import { afterAll, beforeAll, expect, test } from "vitest";
import { type Daemon, type Lease, startDaemon } from "../../support/daemon/daemon.js";
import { until } from "../../support/browser/chromium-until.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";

let daemon: Daemon;
beforeAll(async () => {
  daemon = await startDaemon();
});
afterAll(() => daemon.stop());

const bare = { headless: true, engine: "chromium" };
const without = { DefaultJavaScriptSetting: 2, HomepageLocation: "https://a.example/" };
const create = async (body: object): Promise<Lease> =>
  (await daemon.call("POST /browsers", { ...bare, ...body })).body as Lease;
const acquire = async (pool: string): Promise<Lease> =>
  (await daemon.call(`POST /browser_pools/${pool}/acquire`, { acquire_timeout_seconds: 50 })).body as Lease;
const end = (lease: Lease) => daemon.call(`DELETE /browsers/${lease.session_id}`);

/** Whether a page's own script runs. */
async function runsScript(lease: Lease): Promise<boolean> {
  const client = await connectRaw(lease.cdp_ws_url);
  const page = await client.attach();
  const url = "data:text/html,<title>off</title><script>document.title='on'</script>";
  await client.send("Page.navigate", { url }, page);
  await until("the page", () =>
    client.evaluate(`location.href === ${JSON.stringify(url)} && document.readyState === "complete"`, page),
  );
  const title = await client.evaluate("document.title", page);
  client.close();
  return title === "on";
}

test("a session's policy is in force in its browser alone, and is told by the session", async () => {
  const [one, two] = await Promise.all([create({ browser_policy: without }), create({})]);
  expect(one).toMatchObject({ browser_policy: without });
  expect(two).not.toHaveProperty("browser_policy");
  expect(await Promise.all([runsScript(one), runsScript(two)])).toEqual([false, true]);
  expect((await daemon.call(`GET /browsers/${one.session_id}`)).body).toMatchObject({
    browser_policy: without,
  });
  await Promise.all([end(one), end(two)]);
});

test("a pool's policy is in force in each of its browsers; a PATCH replaces it for those launched after, and an empty one clears it", async () => {
  const created = await daemon.makePool({ name: "ruled", ...bare, chrome_policy: without });
  expect(created).toMatchObject({ browser_pool_config: { browser_policy: without } });
  const first = await acquire("ruled");
  expect(first).toMatchObject({ browser_policy: without });
  expect(await runsScript(first)).toBe(false);
  await daemon.call("POST /browser_pools/ruled/release", { session_id: first.session_id, reuse: false });

  const refused = await daemon.call("PATCH /browser_pools/ruled", {
    browser_policy: { ProxyMode: "direct" },
  });
  expect(refused).toMatchObject({
    status: 400,
    body: {
      details: [{ message: "browser_policy.ProxyMode: is managed by the service and cannot be overridden" }],
    },
  });
  expect((await daemon.call("GET /browser_pools/ruled")).body).toMatchObject({
    browser_pool_config: { browser_policy: without },
  });

  for (const [policy, kept] of [
    [{ DefaultJavaScriptSetting: 1 }, { DefaultJavaScriptSetting: 1 }],
    [{}, undefined],
  ] as const) {
    expect(
      await daemon.call("PATCH /browser_pools/ruled", { browser_policy: policy, discard_all_idle: true }),
    ).toMatchObject({ status: 200 });
    const { body } = await daemon.call("GET /browser_pools/ruled");
    expect(body.browser_pool_config.browser_policy).toEqual(kept);
    await until("a browser launched after", async () => {
      const browsers = await daemon.browsersOf("ruled");
      return browsers.length === 1 && browsers.every(({ state, stale }) => state === "idle" && !stale);
    });
    const lease = await acquire("ruled");
    expect((lease as { browser_policy?: unknown }).browser_policy).toEqual(kept);
    expect(await runsScript(lease)).toBe(true);
    await daemon.call("POST /browser_pools/ruled/release", { session_id: lease.session_id, reuse: false });
  }
});

test.each(["POST /browsers", "POST /browser_pools"])(
  "%s: every policy at fault is named, and nothing is made",
  async (operation) => {
    const policy = {
      ExtensionSettings: {},
      NoSuchPolicy: true,
      BookmarkBarEnabled: "yes",
      URLAllowlist: ["file:///*"],
      HomepageLocation: "https://a.example/",
    };
    const got = await daemon.call(operation, {
      ...bare,
      ...(operation.includes("pools") && { size: 1, name: "faulty" }),
      browser_policy: policy,
    });
    expect(got).toMatchObject({ status: 400, body: { code: "bad_request" } });
    expect(got.body.details.map(({ message }: { message: string }) => message)).toEqual([
      "browser_policy.ExtensionSettings: is managed by the service and cannot be overridden",
      "browser_policy.NoSuchPolicy: is no policy that Chromium knows",
      "browser_policy.BookmarkBarEnabled: must be a boolean",
      "browser_policy.URLAllowlist: is managed by the service; network.allowed_hosts says what may be reached",
    ]);
    expect((await daemon.call("GET /browser_pools/faulty")).status).toBe(404);
  },
);

test("headless-shell, which knows no policy, is refused with one", async () => {
  const got = await daemon.call("POST /browsers", {
    headless: true,
    engine: "headless-shell",
    browser_policy: { HomepageLocation: "https://a.example/" },
  });
  expect(got).toMatchObject({
    status: 400,
    body: { details: [{ message: expect.stringContaining("headless-shell has no policies") }] },
  });
});
