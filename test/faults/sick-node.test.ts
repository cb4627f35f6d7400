import { afterEach, beforeEach, expect } from "vitest";
import { until } from "../support/browser/chromium-until.js";
import { type DaemonProcess } from "../support/daemon/daemon-process.js";
import { Fleet, spread } from "../support/daemon/fleet.js";
import { send } from "../support/http/http-server.js";
import { fault } from "../support/faults/fault.js";

let fleet: Fleet;
beforeEach(async () => {
  fleet = await Fleet.open();
});
afterEach(() => fleet.close());

const sick = { failWithCode: 1, lines: ["cannot start"] };
const metricsOf = async ({ url, apiKey }: DaemonProcess): Promise<string> =>
  (await send(`${url}/metrics`, { method: "GET", headers: { authorization: `Bearer ${apiKey}` } })).text;
const launchesOn = ({ log }: DaemonProcess): number => log.match(/"msg":"launch failed"/g)?.length ?? 0;

fault(
  "a pool fills on the healthy node beside one where Chromium does not start, which is shown, and tried again until it does",
  async (tell) => {
    const control = await fleet.control();
    // Its pauses double: after six failures it would rest longer than this test waits.
    const shortPauses = { fill: { backoff_max_ms: 2_000 } };
    const [a] = [await fleet.node("a", { knobs: sick, ...shortPauses }), await fleet.node("b")];
    await control.call("POST /browser_pools", { name: "herd", size: 8, headless: true });
    await control.poolWhen("herd", (pool) => pool.available_count === 8);
    expect(await spread(control, "herd")).toEqual({ b: 8 });
    await until("the sick node in the metrics", async () =>
      (await metricsOf(control)).includes('remuda_nodes{state="failing"} 1'),
    );
    await until("it in the node's log", () => a.daemon.log.includes("node fails launches"));
    await a.fake.turn({});
    await control.call("PATCH /browser_pools/herd", { size: 12 });
    await until(
      "browsers on the node that is well again",
      async () => ((await spread(control, "herd"))["a"] ?? 0) > 0 || (await grown(control)),
    ).catch(async (error: unknown) => {
      throw new Error(await cluesOf(control, a.daemon), { cause: error });
    });
    await until(
      "it is shown as well",
      async () => !(await metricsOf(control)).includes('remuda_nodes{state="failing"} 1'),
    );
    tell({ saw: "a full pool, on the other node" });
  },
);

/** What tells of the cause where a node that is well again is left alone. */
async function cluesOf(control: DaemonProcess, { log }: DaemonProcess): Promise<string> {
  const { body: pool } = await control.call("GET /browser_pools/herd");
  const browsers = await spread(control, "herd");
  const redis = fleet.redis.client();
  const keys = await redis.keys("remuda:{node-a}:*");
  const marks = await Promise.all(keys.map(async (key) => `${key}: ${await redis.pttl(key)} ms left`));
  redis.disconnect();
  return `${JSON.stringify({ pool, browsers, marks }, undefined, 1)}\n${log.slice(-4000)}`;
}

/** One more browser is wanted, so that the node is tried again. */
async function grown(control: DaemonProcess): Promise<undefined> {
  const { body } = await control.call("GET /browser_pools/herd");
  if (body.available_count === body.browser_pool_config.size)
    await control.call("PATCH /browser_pools/herd", { size: body.browser_pool_config.size + 1 });
  return undefined;
}

fault(
  "no caller of POST /browsers hears of a node where Chromium does not start, and few launches are lost on it",
  async (tell) => {
    const control = await fleet.control();
    const [a] = [await fleet.node("a", { knobs: sick }), await fleet.node("b")];
    const made = await Promise.all(
      Array.from({ length: 4 }, () => control.call("POST /browsers", { headless: true })),
    );
    for (let i = 0; i < 8; i += 1) made.push(await control.call("POST /browsers", { headless: true }));
    expect(
      made.map(({ status, text }) => (status === 200 || status === 201 ? "made" : `${status} ${text}`)),
    ).toEqual(Array.from({ length: 12 }, () => "made"));
    expect(launchesOn(a.daemon)).toBeLessThanOrEqual(8);
    tell({ saw: "nothing: each launch that failed was tried elsewhere" });
  },
);

fault(
  "where every node fails, the pool and the caller are told what Chromium said, and on which node",
  async (tell) => {
    const control = await fleet.control();
    await fleet.node("a", { knobs: sick });
    await control.call("POST /browser_pools", { name: "herd", size: 2, headless: true });
    const { fill } = await control.poolWhen("herd", (pool) => pool.fill?.reason === "launch_failing");
    expect(fill?.last_error).toMatch(/^a: [^]*cannot start/);
    const refused = await control.call("POST /browsers", { headless: true });
    expect(refused).toMatchObject({ status: 500, body: { code: "launch_failed" } });
    expect(JSON.stringify(refused.body)).toContain("cannot start");
    tell({ saw: "what Chromium said, and on which node" });
  },
);
