import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { processesOf, workspaceOf } from "../../support/browser/browser-processes.js";
import { until } from "../../support/browser/chromium-until.js";
import { type Daemon, type Lease, startDaemon } from "../../support/daemon/daemon.js";
import { lookAround, type LoginSite, moveIn, openLoginSite } from "../../support/browser/sites/login-site.js";
import { connectRaw, type RawCdp } from "../../support/gateway/raw-cdp.js";
import { signal } from "../../support/living.js";

let daemon: Daemon;
let site: LoginSite;
beforeAll(async () => {
  [daemon, site] = await Promise.all([startDaemon(), openLoginSite()]);
});
afterAll(async () => {
  await site.close();
  await daemon.stop();
});

const created = async (body: object): Promise<Lease> =>
  (await daemon.call("POST /browsers", { headless: true, timeout_seconds: 600, ...body })).body as Lease;
const end = (lease: Lease) => daemon.call(`DELETE /browsers/${lease.session_id}`);

async function see(client: RawCdp, path: string, expression: string): Promise<unknown> {
  const page = await client.attach();
  await client.send("Page.navigate", { url: site.origin + path }, page);
  await until(
    `${path} loaded`,
    async () =>
      (await client.evaluate(`document.readyState === "complete" && location.pathname`, page)) === path,
  );
  return await client.evaluate(expression, page);
}
async function seeIn(lease: Lease, path: string, expression: string): Promise<unknown> {
  const client = await connectRaw(lease.cdp_ws_url);
  const seen = await see(client, path, expression);
  await client.close();
  return seen;
}

test("two sessions that save one profile at once leave the whole state of one", async () => {
  await daemon.call("POST /profiles", { name: "shared" });
  const words = ["one", "other"];
  const leases = await Promise.all(
    words.map(() => created({ profile: { name: "shared", save_changes: true } })),
  );
  const write = (word: string): string =>
    `for (let at = 0; at < 50; at += 1) localStorage.setItem(at, ${JSON.stringify(word)}); document.cookie = "who=${word}; max-age=3600"`;
  await Promise.all(leases.map((lease, at) => seeIn(lease, "/", write(words[at] ?? ""))));
  expect((await Promise.all(leases.map(end))).map(({ status }) => status)).toEqual([204, 204]);
  const next = await created({ profile: { name: "shared" } });
  const found = await seeIn(
    next,
    "/",
    "[...new Set([...Array(50).keys()].map((at) => localStorage.getItem(at))), document.cookie].join()",
  );
  expect(words.map((word) => `${word},who=${word}`)).toContain(found);
  await end(next);
  expect((await daemon.call("GET /metrics")).text).toContain('remuda_profile_saves_total{outcome="saved"} 2');
});

test("clients are cut before the save, and what they had done is in it; nothing of the browser is left then", async () => {
  await daemon.call("POST /profiles", { name: "held" });
  const lease = await created({ profile: { name: "held", save_changes: true } });
  const client = await connectRaw(lease.cdp_ws_url);
  await see(client, "/login", moveIn);
  expect((await end(lease)).status).toBe(204);
  expect((await client.closed).code).toBe(4410);
  expect(existsSync(workspaceOf(daemon.place.scratchDirectory, lease.session_id))).toBe(false);
  expect(await readdir(join(daemon.place.dataDir, "staging"))).toEqual([]);
  const next = await created({ profile: { name: "held" } });
  expect(await seeIn(next, "/", lookAround)).toBe("welcome back, stored, kept");
  await end(next);
});

test("a session that expires is saved too", async () => {
  await daemon.call("POST /profiles", { name: "left" });
  const lease = await created({ profile: { name: "left", save_changes: true }, timeout_seconds: 10 });
  await seeIn(lease, "/login", moveIn);
  await until("its save", async () => (await daemon.call("GET /profiles/left")).body.updated_at, 60_000);
  const next = await created({ profile: { name: "left" } });
  expect(await seeIn(next, "/", lookAround)).toBe("welcome back, stored, kept");
  await end(next);
});

test("a browser whose Chromium is killed saves nothing: the profile is as it was", async () => {
  await daemon.call("POST /profiles", { name: "killed" });
  const lease = await created({ profile: { name: "killed", save_changes: true } });
  await seeIn(lease, "/login", moveIn);
  // Chromium knows itself by a pid of its own namespace, which is somebody else's here.
  const { main } = await processesOf(daemon.place.scratchDirectory, lease.session_id);
  signal(main, "SIGKILL");
  await until("its end", async () => (await daemon.call(`GET /browsers/${lease.session_id}`)).status === 404);
  // A save would come before its directories go.
  const workspace = workspaceOf(daemon.place.scratchDirectory, lease.session_id);
  await until("nothing of it left", () => !existsSync(workspace));
  const { status, body } = await daemon.call("GET /profiles/killed");
  expect([status, body.updated_at]).toEqual([200, undefined]);
});

test("a daemon that stops saves what is held", async () => {
  const stopping = await startDaemon();
  await stopping.call("POST /profiles", { name: "stopped" });
  const lease = (
    await stopping.call("POST /browsers", {
      headless: true,
      profile: { name: "stopped", save_changes: true },
    })
  ).body as Lease;
  await seeIn(lease, "/login", moveIn);
  await stopping.stop();
  expect(stopping.log).toMatch(/"outcome":"saved"[^\n]*"profile save ended"/);
});
