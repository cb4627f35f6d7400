import { afterEach, beforeEach, expect, test } from "vitest";
import { loadScripts } from "../../../src/store/redis/scripts.js";
import { DaemonClient } from "../../support/daemon/daemon.js";
import type { DaemonProcess } from "../../support/daemon/daemon-process.js";
import { Fleet } from "../../support/daemon/fleet.js";
import { openRedisProxy, type RedisProxy } from "../../support/store/redis-proxy.js";

let fleet: Fleet;
/** The second control's way to Redis. */
let proxy: RedisProxy;
let controls: readonly [DaemonProcess, DaemonProcess];
beforeEach(async () => {
  fleet = await Fleet.open();
  proxy = await openRedisProxy(fleet.redis.url);
  controls = [await fleet.control(), await fleet.control({}, proxy.url)];
});
afterEach(async () => {
  await fleet.close();
  await proxy.close();
});

/** A key, and who shows it at the second control. */
async function makeKey() {
  const { body } = await controls[0].call("POST /org/api_keys", { name: "made" });
  return { id: String(body.id), client: new DaemonClient(controls[1].url, String(body.key)) };
}
const living = async (): Promise<readonly string[]> =>
  ((await controls[0].call("GET /org/api_keys?limit=100")).body as { name: string }[]).map(
    ({ name }) => name,
  );

const makers = [
  ["create-key", "POST /org/api_keys", { name: "left behind" }],
  ["rotate-key", "POST /org/api_keys/:other/rotate", { expire_in_days: 0 }],
] as const;

test.each(makers)(
  "a key whose %s is on its way to Redis when it is deleted makes no other",
  async (script, operation, body) => {
    const [{ id, client }, other] = [await makeKey(), await makeKey()];
    const asked = operation.replace(":other", other.id);
    const reached = proxy.freezeAt(loadScripts().get(script)?.sha ?? "");
    const answer = client.call(asked, body).then(
      ({ status }) => status,
      () => 0,
    );
    await reached;
    expect((await controls[0].call(`DELETE /org/api_keys/${id}`)).status).toBe(204);
    // The control tries again on its next connection, whether its caller was cut off meanwhile or not.
    expect([401, 0]).toContain(await answer);
    await expect.poll(async () => (await other.client.call("GET /auth/context")).status).toBe(200);
    expect(await living()).toEqual(["made"]);
  },
);

test("of two rotations by which a key ends itself at once, one is made", async () => {
  const { id, client } = await makeKey();
  const rotate = (url: string) =>
    new DaemonClient(url, client.apiKey).call(`POST /org/api_keys/${id}/rotate`, { expire_in_days: 0 }).then(
      ({ status }) => status,
      () => 0,
    );
  const answers = await Promise.all(controls.flatMap(({ url }) => [rotate(url), rotate(url), rotate(url)]));
  expect(answers.filter((status) => status === 201)).toHaveLength(1);
  expect((await client.call("GET /auth/context")).status).toBe(401);
  const { body } = await controls[0].call("GET /org/api_keys?limit=100");
  const isGood = ({ expires_at: at }: { expires_at: string | null }): boolean =>
    at === null || Date.parse(at) > Date.now();
  expect((body as { expires_at: string | null }[]).filter(isGood)).toHaveLength(1);
});
