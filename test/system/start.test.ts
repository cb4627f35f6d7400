import { execFile } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { bound } from "../support/bound.js";
import { until } from "../support/browser/chromium-until.js";
import { startDaemon } from "../support/daemon/daemon.js";
import { spawnDaemon } from "../support/daemon/daemon-process.js";
import { DaemonPlace } from "../support/daemon/daemon-settings.js";
import type { Lease } from "../support/daemon/daemon.js";
import { freePort } from "../support/free-port.js";
import { connectRaw } from "../support/gateway/raw-cdp.js";
import { send } from "../support/http/http-server.js";
import { startRedis } from "../support/store/redis.js";

/** Where the packages are that a pasted script imports. */
const root = join(import.meta.dirname, "../..");

test("a first start draws its keys, fills the declared pools and says how to go on; the next finds all as it was left", async () => {
  const pools = [{ name: "herd", size: 1, headless: true }];
  const place = new DaemonPlace({ drawsKeys: true, file: { pools } });
  const first = await spawnDaemon(place);
  await until("the banner", () => first.log.includes("Remuda is ready"));
  for (const text of [`${first.url}/browser_pools/herd/acquire`, join(place.dataDir, "api-key")])
    await until(text, () => first.log.includes(text));
  for (const name of ["api-key", "cluster-secret", "encryption-key"])
    expect((statSync(join(place.dataDir, name)).mode & 0o777).toString(8)).toBe("600");
  expect(first.apiKey).toMatch(/^rk_[\w-]{43}$/);
  expect(
    (await send(`${first.url}/browser_pools`, { headers: { authorization: "Bearer rk_of_somebody_else" } }))
      .status,
  ).toBe(401);
  expect((await first.call("PATCH /browser_pools/herd", { size: 2, timeout_seconds: 77 })).status).toBe(200);
  const { id } = await first.poolWhen("herd", (pool) => pool.available_count === 2);
  expect(await first.end("SIGTERM")).toEqual({ code: 0, signal: null });

  const second = await spawnDaemon(place);
  expect(second.apiKey).toBe(first.apiKey);
  const pool = await second.poolWhen("herd", (state) => state.available_count === 2);
  expect(pool).toMatchObject({ id, browser_pool_config: { size: 2, timeout_seconds: 77 } });
  await until("what differs told", () => /"fields":\["size"\].*declared pool differs/.test(second.log));
  expect(first.log + second.log).not.toContain(first.apiKey);
  await second.stop(first.log);
});

test("a start without pools says how to go on too, and what it prints works", async () => {
  const place = new DaemonPlace({ drawsKeys: true });
  const daemon = await spawnDaemon(place);
  const script = await until(
    "the script",
    () => /( {2}import \{ chromium \}[^]*?await ask\("DELETE".*)\n/.exec(daemon.log)?.[1],
  );
  expect(daemon.log).toContain(`curl -X POST ${daemon.url}/browsers`);
  expect(daemon.log).not.toContain("/browser_pools/");
  const [program = "", ...args] = bound(process.execPath, "--input-type=module", "-e", script);
  const env = { PATH: process.env["PATH"], REMUDA_API_KEY: daemon.apiKey };
  const { stdout } = await promisify(execFile)(program, args, { cwd: root, env });
  expect(stdout).toBe("Hello from Remuda\n");
  expect((await daemon.call("GET /browsers")).body).toEqual([]);
  await daemon.stop();
});

test("a port that is taken and an engine that is not there end a start with the setting to change, without a stack", async () => {
  const first = await spawnDaemon(new DaemonPlace({}));
  const { port } = new URL(first.url);
  const taken = new DaemonPlace({ port: Number(port) });
  await expect(spawnDaemon(taken)).rejects.toThrow(
    /"message":"port \d+ of 127\.0\.0\.1 is taken.*REMUDA_PORT/,
  );
  const absent = new DaemonPlace({ file: { browser: { executable: "/nowhere/chromium" } } });
  const failed = await spawnDaemon(absent).catch(String);
  expect(failed).toContain("browser.executable (REMUDA_CHROMIUM): /nowhere/chromium is not there");
  expect(failed).not.toContain("    at ");
  await first.stop();
});

test("a node whose port is taken undoes its start", async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  onTestFinished(() => void taken.close());
  const { port } = taken.address() as AddressInfo;
  const place = new DaemonPlace({ port, role: "node", redisUrl: redis.url });
  await expect(spawnDaemon(place)).rejects.toThrow(/"message":"port \d+ of 127\.0\.0\.1 is taken/);
  expect(existsSync(place.scratchDirectory)).toBe(false);
  place.remove();
});

test("a start whose sweep fails keeps what the next one sweeps by", async () => {
  const place = new DaemonPlace({});
  // This is no cgroup, so it cannot be removed like one.
  const top = join(place.directory, "top");
  mkdirSync(join(top, "x"), { recursive: true });
  writeFileSync(join(top, "x", "file"), "");
  const tops = join(place.scratchDirectory, "cgroup-tops");
  writeFileSync(tops, `${top}\n`);
  await expect(spawnDaemon(place)).rejects.toThrow("ENOTEMPTY");
  expect(readFileSync(tops, "utf8")).toContain(`${top}\n`);
  rmSync(join(top, "x", "file"));
  const daemon = await spawnDaemon(place);
  expect(existsSync(top)).toBe(false);
  await daemon.stop();
});

test("a daemon whose form's port is taken takes no requests any more", async () => {
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  onTestFinished(() => void taken.close());
  const form = { port: (taken.address() as AddressInfo).port, public_url: "http://127.0.0.1" };
  const port = await freePort();
  await expect(startDaemon({ port, file: { vault: { form } } })).rejects.toThrow("is taken");
  const socket = connect(port, "127.0.0.1");
  await expect(once(socket, "connect")).rejects.toMatchObject({ code: "ECONNREFUSED" });
});

test("a second daemon on the same directory of browsers is refused too, and what the first has lent lives", async () => {
  const first = await spawnDaemon(new DaemonPlace({}));
  await first.makePool({ name: "herd" });
  const { body } = await first.call("POST /browser_pools/herd/acquire", { acquire_timeout_seconds: 30 });
  const client = await connectRaw((body as Lease).cdp_ws_url);
  const { scratchDirectory } = first.place;
  const place = new DaemonPlace({ file: { node: { scratch_dir: scratchDirectory } } });
  await expect(spawnDaemon(place)).rejects.toThrow(
    `node.scratch_dir: ${scratchDirectory} is in use by process ${first.pid}`,
  );
  expect((await client.send("Browser.getVersion")).result).toBeDefined();
  // It used that directory once, and is given another now.
  const other = new DaemonPlace({});
  mkdirSync(other.dataDir, { mode: 0o700 });
  writeFileSync(join(other.dataDir, "scratch-directory"), `${scratchDirectory}\n`);
  const second = await spawnDaemon(other);
  expect((await client.send("Browser.getVersion")).result).toBeDefined();
  await client.close();
  await second.stop();
  await first.stop();
  place.remove();
});

test("a second daemon on the same data directory is refused by the first's name, and harms nothing", async () => {
  const place = new DaemonPlace({});
  const first = await spawnDaemon(place);
  await first.makePool({ name: "herd" });
  await expect(spawnDaemon(place)).rejects.toThrow(`is in use by process ${first.pid}`);
  expect(await first.poolWhen("herd", (pool) => pool.available_count === 1)).toBeTruthy();
  await first.stop();
});

test("a daemon that has run in the test's own process leaves that no listener, however many follow", async () => {
  const listeners = (): number =>
    process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0);
  // What it loads late may stay.
  const first = await startDaemon();
  await first.stop();
  const before = listeners();
  const second = await startDaemon();
  await second.stop();
  expect(listeners()).toBe(before);
});
