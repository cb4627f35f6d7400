import { expect, test } from "vitest";
import { redisPidIn } from "../../support/daemon/said.js";
import { type DaemonProcess, spawnDaemon } from "../../support/daemon/daemon-process.js";
import { DaemonPlace } from "../../support/daemon/daemon-settings.js";
import { send } from "../../support/http/http-server.js";
import { signalLiving } from "../../support/living.js";
import { encrypted, formHeader } from "../../support/vault/vault-bed.js";

const path = "/vaults/logins/items/shop";
const fields = [
  { name: "user", type: "text", sensitive: false, value: "before" },
  { name: "password", type: "password" },
];

/** In the last one both are killed once the submission is answered. */
const rounds = 7;

/** A question of the form's page. */
const ask = (daemon: DaemonProcess, what: string, body: object) => {
  const port = /"port":(\d+)[^\n]*"msg":"collection form listening"/.exec(daemon.log)?.[1] ?? "";
  return send(`http://127.0.0.1:${port}/${what}`, { method: "POST", body });
};

/** What the page sends for a link. */
async function submissionOf(daemon: DaemonProcess, token: string) {
  const { body } = await ask(daemon, "open", { token });
  const { encryption_key: key, version } = body;
  const valueOf = async (field: string) =>
    await encrypted(key, `after of ${field}`, formHeader(token, field));
  return {
    token,
    version: Number(version),
    values: { user: await valueOf("user"), password: await valueOf("password") },
  };
}

async function kill(daemon: DaemonProcess): Promise<void> {
  daemon.signal("SIGKILL");
  signalLiving(redisPidIn(daemon.log), "SIGKILL");
  await daemon.ended();
}

/** Turns of the event loop here, while the daemon works on what it was sent. */
async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

test("daemon and Redis killed amid a submission: the item and its link are as before or as after, together", async () => {
  const place = new DaemonPlace({
    file: {
      // A busy disk is no fault.
      redis: { command_timeout_ms: 20_000 },
      vault: { form: { public_url: "https://form.example" } },
    },
  });
  let daemon = await spawnDaemon(place);
  let said = "";
  let wait = 300;
  for (let round = 0; round < rounds; round += 1) {
    await daemon.call("POST /vaults", { name: "logins" });
    await daemon.call(`DELETE ${path}`);
    const made = await daemon.call(`PUT ${path}`, {
      type: "credential",
      spec: { provider: "native", fields },
    });
    const token = String(made.body.action.url).split("#token=")[1] ?? "";
    const submission = await submissionOf(daemon, token);
    const answer = ask(daemon, "submit", submission).catch(() => undefined);
    if (round === rounds - 1) await answer;
    else await turns(wait);
    await kill(daemon);
    const isDone = (await answer)?.body.state === "done";
    said += daemon.log;
    daemon = await spawnDaemon(place);
    const { body: item } = await daemon.call(`GET ${path}`);
    const { state } = (await ask(daemon, "open", { token })).body;
    const isAfter = item.version === 2;
    const user = { has_value: true, value: isAfter ? "after of user" : "before" };
    expect(item).toMatchObject({
      version: isAfter ? 2 : 1,
      state: {
        status: isAfter ? "ready" : "pending_collection",
        fields: { user, password: { has_value: isAfter } },
      },
    });
    expect(state).toBe(isAfter ? "used" : "form");
    if (isDone) expect(isAfter).toBe(true);
    if (round === rounds - 1) expect(isDone).toBe(true);
    // Later where it came too early to be seen, and earlier where it was too late: around the change itself.
    wait = isAfter ? wait / 3 : wait * 3;
    // What the page sends once more is taken, or told to have been.
    expect((await ask(daemon, "submit", submission)).body.state).toBe("done");
    const { body: last } = await daemon.call(`GET ${path}`);
    expect(last).toMatchObject({ version: 2, state: { status: "ready" } });
  }
  expect(said + daemon.log).not.toContain("after of password");
  await daemon.stop(said);
});
