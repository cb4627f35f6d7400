import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  type BrowserProcesses,
  processesOf as findProcesses,
  workspaceOf,
} from "../../support/browser/browser-processes.js";
import { makeFakeChromium, standIn } from "../../support/browser/chromium-fake.js";
import { until } from "../../support/browser/chromium-until.js";
import { type Daemon, type Lease, startDaemon } from "../../support/daemon/daemon.js";
import { refusedUpgrade } from "../../support/gateway/gateway-bed.js";
import { isLiving, signal } from "../../support/living.js";
import { connectRaw, type RawCdp, type RawReply } from "../../support/gateway/raw-cdp.js";

let daemon: Daemon;
beforeAll(async () => {
  daemon = await startDaemon({ file: { node: { probe_limit_seconds: 5, reset_limit_seconds: 10 } } });
});
afterAll(() => daemon.stop());

const processesOf = (session: string, of: Daemon = daemon): Promise<BrowserProcesses> =>
  findProcesses(of.place.scratchDirectory, session);
const idleIn = async (pool: string): Promise<string> =>
  await until(
    "an idle browser",
    async () => (await daemon.browsersOf(pool)).find(({ state }) => state === "idle")?.session_id,
  );
const acquire = async (pool: string): Promise<Lease> =>
  (await daemon.call(`POST /browser_pools/${pool}/acquire`, { acquire_timeout_seconds: 30 })).body as Lease;
const replaced = (pool: string, session: string): Promise<unknown> =>
  until("a replacement", async () => {
    const browsers = await daemon.browsersOf(pool);
    return (
      browsers.every(({ session_id }) => session_id !== session) &&
      browsers.some(({ state }) => state === "idle")
    );
  });
/** Its tombstone follows the end of the lease. */
const whenCrashed = ({ session_id: id }: Lease): Promise<unknown> =>
  until(
    "why it is over",
    async () => (await daemon.call(`GET /browsers/${id}?include_deleted=true`)).body.reason === "crashed",
  );
const isGone = async (session: string): Promise<boolean> =>
  !existsSync(workspaceOf(daemon.place.scratchDirectory, session));

const kinds = [
  { name: "shell", headless: true, engine: "headless-shell" },
  { name: "headful", headless: false, viewport: { width: 800, height: 600 } },
];

test.each(kinds)("an idle browser that is killed is replaced at once ($name)", async (kind) => {
  await daemon.makePool({ ...kind, name: `idle-${kind.name}` });
  const session = await idleIn(`idle-${kind.name}`);
  signal((await processesOf(session)).main, "SIGKILL");
  await replaced(`idle-${kind.name}`, session);
  await until("nothing of it left", () => isGone(session));
});

test.each(kinds)(
  "a leased browser that is killed ends its lease: its client is told, its session is over, its URL says why ($name)",
  async (kind) => {
    await daemon.makePool({ ...kind, name: `leased-${kind.name}` });
    const lease = await acquire(`leased-${kind.name}`);
    const client = await connectRaw(lease.cdp_ws_url);
    signal((await processesOf(lease.session_id)).main, "SIGKILL");
    expect(await client.closed).toMatchObject({ reason: expect.stringMatching(/gone|over/) });
    await until(
      "the session over",
      async () => (await daemon.call(`GET /browsers/${lease.session_id}`)).status === 404,
    );
    await whenCrashed(lease);
    expect(await refusedUpgrade(lease.cdp_ws_url)).toMatchObject({
      status: 410,
      body: { code: "browser_gone", message: expect.stringContaining("crashed") },
    });
    await replaced(`leased-${kind.name}`, lease.session_id);
    expect(
      (await daemon.call(`POST /browser_pools/leased-${kind.name}/release`, { session_id: lease.session_id }))
        .status,
    ).toBe(204);
    await until("nothing of it left", () => isGone(lease.session_id));
  },
);

test("a headful browser whose display is killed is over as well", async () => {
  await daemon.makePool({ name: "blind", headless: false, viewport: { width: 800, height: 600 } });
  const session = await idleIn("blind");
  const { main, display } = await processesOf(session);
  const workspace = workspaceOf(daemon.place.scratchDirectory, session);
  expect(await readdir(join(workspace, "display"))).toEqual([expect.stringMatching(/^X\d+$/)]);
  signal(display, "SIGKILL");
  await replaced("blind", session);
  expect(isLiving(main ?? -1)).toBe(false);
  await until("its directories gone", async () => !existsSync(workspace));
});

test("a browser that is killed while it is reset is replaced", async () => {
  await daemon.makePool({ name: "reset", reset_on_release: "state" });
  const lease = await acquire("reset");
  await (await connectRaw(lease.cdp_ws_url)).close();
  const { main } = await processesOf(lease.session_id);
  signal(main, "SIGSTOP");
  await daemon.call("POST /browser_pools/reset/release", { session_id: lease.session_id });
  await daemon.poolWhen("reset", (pool) => pool.resetting_count === 1);
  signal(main, "SIGKILL");
  await replaced("reset", lease.session_id);
  await until("nothing of it left", () => isGone(lease.session_id));
});

test("an idle browser that hangs is found by its probe and replaced", async () => {
  await daemon.makePool({ name: "hung" });
  const session = await idleIn("hung");
  const { main } = await processesOf(session);
  signal(main, "SIGSTOP");
  await replaced("hung", session);
  await until("the process ended", () => !isLiving(main));
});

test("a browser that hangs while it is fenced never comes back to the pool", async () => {
  await daemon.makePool({ name: "stuck" });
  const lease = await acquire("stuck");
  const client = await connectRaw(lease.cdp_ws_url);
  const { main } = await processesOf(lease.session_id);
  signal(main, "SIGSTOP");
  await daemon.call("POST /browser_pools/stuck/release", { session_id: lease.session_id });
  await client.closed;
  await replaced("stuck", lease.session_id);
  await until("the process ended", () => !isLiving(main));
});

interface Outgrown {
  readonly session: Lease;
  readonly client: RawCdp;
  readonly answer: RawReply;
}

/**
 * A page takes more than its browser may have. The kernel may end the browser itself instead of the page, and
 * then another is tried.
 */
async function outgrow(attemptsLeft = 3): Promise<Outgrown> {
  const session = (await daemon.call("POST /browsers", { headless: true, memory: "1GiB" })).body as Lease;
  const client = await connectRaw(session.cdp_ws_url);
  const page = await client.attach();
  const hog =
    "new Promise(() => { globalThis.kept = []; setInterval(() => kept.push(new Uint8Array(64 * 2 ** 20).fill(1)), 1); })";
  const ended = client.closed.then(() => undefined);
  const asked = client.send("Runtime.evaluate", { expression: hog, awaitPromise: true }, page);
  const answer = await Promise.race([asked, ended]);
  const isLeft = await Promise.race([client.send("Browser.getVersion"), ended]);
  if (answer && isLeft) return { session, client, answer };
  await whenCrashed(session);
  if (attemptsLeft === 1) throw new Error("the kernel ended the browser each time");
  return await outgrow(attemptsLeft - 1);
}

test("a page that outgrows its browser's memory while a command is pending: the client gets an error for that command, and the session goes on", async () => {
  const { session, client, answer } = await outgrow();
  expect(answer.error?.message).toBeTruthy();
  const { result } = await client.send("Target.createTarget", { url: "about:blank" });
  const fresh = await client.attach(String(result?.targetId));
  expect(await client.evaluate("6 * 7", fresh)).toBe(42);
  await daemon.call(`DELETE /browsers/${session.session_id}`);
  await client.closed;
});

test("launches that fail are told in the pool with Chromium's last lines, backed off, and go on when the cause is mended", async () => {
  const fake = await makeFakeChromium({ failWithCode: 3, lines: ["first line", "the profile is on fire"] });
  const failing = await startDaemon({ file: standIn(fake) });
  await failing.call("POST /browser_pools", { name: "failing", size: 2, headless: true });
  const pool = await failing.poolWhen("failing", ({ fill }) => fill?.reason === "launch_failing");
  expect(pool.fill?.last_error).toMatch(/code 3[\s\S]*the profile is on fire/);
  const refused = await failing.call("POST /browsers", { headless: true });
  expect(refused).toMatchObject({ status: 500, body: { code: "launch_failed" } });
  expect(refused.body.details[0].message).toContain("the profile is on fire");
  await fake.turn({});
  await failing.poolWhen(
    "failing",
    ({ available_count, fill }) => available_count === 2 && fill === undefined,
  );
  await failing.stop();
  await fake.remove();
});

test("a launching browser that is killed counts as a failed launch and is launched again", async () => {
  const fake = await makeFakeChromium({ delayMs: 20_000 });
  const slow = await startDaemon({ file: standIn(fake) });
  await slow.call("POST /browser_pools", { name: "slow", size: 1, headless: true });
  const main = await until("the process of the launch", async () => {
    const session = (await slow.browsersOf("slow"))[0]?.session_id ?? "none";
    const found = (await processesOf(session, slow)).main;
    return found;
  });
  await fake.turn({});
  signal(main, "SIGKILL");
  await slow.poolWhen("slow", ({ available_count }) => available_count === 1);
  await slow.stop();
  await fake.remove();
});
