import { afterEach, beforeEach, expect, test } from "vitest";
import { type DaemonProcess, spawnDaemon } from "../../support/daemon/daemon-process.js";
import { DaemonPlace } from "../../support/daemon/daemon-settings.js";
import { type Got, send } from "../../support/http/http-server.js";
import { openRedisProxy, type RedisProxy } from "../../support/store/redis-proxy.js";
import { startRedis, type TestRedis } from "../../support/store/redis.js";
import { encrypted, formHeader } from "../../support/vault/vault-bed.js";

const path = "/vaults/logins/items/shop";
const spec = {
  provider: "native",
  fields: [
    { name: "user", type: "text", sensitive: false, value: "before" },
    { name: "password", type: "password" },
  ],
};

/** One control whose way to Redis can be frozen, and one beside it. */
let redis: TestRedis;
let proxy: RedisProxy;
let frozen: DaemonProcess;
let other: DaemonProcess;
const start = (redisUrl: string): Promise<DaemonProcess> =>
  spawnDaemon(
    new DaemonPlace({
      role: "control",
      redisUrl,
      // Other work on the machine is no fault: what is asked once more has its time.
      file: {
        redis: { command_timeout_ms: 5000 },
        vault: { form: { port: 0, public_url: "https://form.example" } },
      },
    }),
  );
beforeEach(async () => {
  redis = await startRedis();
  proxy = await openRedisProxy(redis.url);
  [frozen, other] = await Promise.all([start(proxy.url), start(redis.url)]);
  expect((await other.call("POST /vaults", { name: "logins" })).status).toBe(201);
});
afterEach(async () => {
  await Promise.all([frozen.stop(), other.stop()]);
  await proxy.close();
  await redis.stop();
});

const put = (daemon: DaemonProcess): Promise<Got> => daemon.call(`PUT ${path}`, { type: "credential", spec });
const patch = (daemon: DaemonProcess, version: number, value: string): Promise<Got> =>
  daemon.call(`PATCH ${path}`, { type: "credential", version, spec: { fields: { user: { value } } } });
const userOf = ({ body }: Got): unknown => body.state?.fields.user.value;
const eventsOf = async (): Promise<string[]> =>
  ((await other.call(`GET ${path}/events`)).body as { name: string }[]).map(({ name }) => name);

/** A question of the form's page. */
const ask = (daemon: DaemonProcess, what: string, body: object): Promise<Got> => {
  const port = /"port":(\d+)[^\n]*"msg":"collection form listening"/.exec(daemon.log)?.[1] ?? "";
  return send(`http://127.0.0.1:${port}/${what}`, { method: "POST", body });
};
async function submissionOf(item: Got) {
  const token = String(item.body.action.url).split("#token=")[1] ?? "";
  const { body } = await ask(other, "open", { token });
  const password = await encrypted(body.encryption_key, "entered", formHeader(token, "password"));
  return { token, version: Number(body.version), values: { password } };
}

test("Redis frozen amid a submission: the page is told that it is not known, and the same bytes then that it was done, once", async () => {
  const submission = await submissionOf(await put(other));
  const reached = proxy.freezeAt("credential.submitted");
  const first = ask(frozen, "submit", submission);
  await reached;
  redis.signal("SIGSTOP");
  // What the control has sent arrives all the same, and is carried out once Redis goes on.
  const thawed = proxy.thaw();
  expect(await first).toMatchObject({ status: 503, body: { state: "unavailable" } });
  redis.signal("SIGCONT");
  await thawed;
  // Not all connections of a control are back at once.
  for (const daemon of [frozen, other])
    await expect.poll(async () => (await ask(daemon, "submit", submission)).body).toEqual({ state: "done" });
  expect((await other.call(`GET ${path}`)).body).toMatchObject({ version: 2, state: { status: "ready" } });
  expect(await eventsOf()).toEqual(["credential.created", "credential.submitted"]);
  expect(frozen.log + other.log).not.toContain("entered");
});

test("a control whose connection to Redis is frozen amid a change makes it by another, and what arrives late changes nothing more", async () => {
  await put(other);
  const reached = proxy.freezeAt("credential.updated");
  const first = patch(frozen, 1, "one");
  await reached;
  expect(await first).toMatchObject({ status: 200, body: { version: 2 } });
  expect(userOf(await patch(other, 2, "two"))).toBe("two");
  await proxy.thaw();
  const { body } = await other.call(`GET ${path}`);
  expect([body.version, body.state.fields.user.value]).toEqual([3, "two"]);
  expect(await eventsOf()).toEqual(["credential.created", "credential.updated", "credential.updated"]);
});

test("of two controls that change one version, of which one is frozen, one makes it and the other is told", async () => {
  await put(other);
  const reached = proxy.freezeAt("credential.updated");
  const first = patch(frozen, 1, "one");
  await reached;
  const second = await patch(other, 1, "two");
  expect(second).toMatchObject({ status: 200, body: { version: 2 } });
  expect(await first).toMatchObject({ status: 409, body: { code: "stale_version" } });
  await proxy.thaw();
  expect(userOf(await other.call(`GET ${path}`))).toBe("two");
});

test("what is deleted meanwhile does not come back with a creation that arrives late", async () => {
  const reached = proxy.freezeAt("credential.created");
  const made = put(frozen);
  await reached;
  expect(await made).toMatchObject({ status: 200, body: { version: 1 } });
  expect((await other.call(`DELETE ${path}`)).status).toBe(204);
  await proxy.thaw();
  expect((await other.call(`GET ${path}`)).status).toBe(404);
  // What it has in place of the frozen connection is there, and is not frozen amid being opened.
  expect((await frozen.call(`GET ${path}`)).status).toBe(404);

  const again = proxy.freezeAt("vaultNames");
  const vault = frozen.call("POST /vaults", { name: "late" });
  await again;
  expect(await vault).toMatchObject({ status: 201 });
  expect((await other.call("DELETE /vaults/late")).status).toBe(204);
  await proxy.thaw();
  expect((await other.call("GET /vaults/late")).status).toBe(404);
});

test("a submission at a control that is frozen and one at another: one is made, by whichever, and no link opens any more", async () => {
  const item = await put(other);
  const [one, two] = [await submissionOf(item), await submissionOf(item)];
  const reached = proxy.freezeAt("credential.submitted");
  const first = ask(frozen, "submit", one);
  await reached;
  expect((await ask(other, "submit", two)).body).toEqual({ state: "done" });
  expect((await first).body).toEqual({ state: "used" });
  await proxy.thaw();
  expect((await ask(frozen, "submit", two)).body).toEqual({ state: "done" });
  expect((await ask(frozen, "open", { token: one.token })).body).toEqual({ state: "used" });
  expect((await other.call(`GET ${path}`)).body).toMatchObject({ version: 2 });
});
