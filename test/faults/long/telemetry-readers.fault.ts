import { expect, onTestFinished } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import type { DaemonClient, Lease } from "../../support/daemon/daemon.js";
import { connectRaw, type RawCdp } from "../../support/gateway/raw-cdp.js";
import { commandsIn, gapsIn, StreamFollower, wrongNumbers } from "../../support/telemetry/stream-follower.js";
import { useFaultBed } from "../../support/faults/bed.js";
import { fault, startWatch } from "../../support/faults/fault.js";

const bed = useFaultBed();
const telemetry = { enabled: true };
const patient = { node: { lost_after_ms: 20_000 }, acquire: { control_lost_after_ms: 60_000 } };

const lend = async (control: DaemonClient): Promise<Lease> => {
  await control.makePool({ name: "told", telemetry });
  return (await control.call("POST /browser_pools/told/acquire", {})).body as Lease;
};

/** Sends so many commands one after the other; `between` is called before each. */
async function drive(client: RawCdp, count: number, between: (number: number) => void = () => {}) {
  for (let number = 1; number <= count; number += 1) {
    between(number);
    await client.send("Target.activateTarget", { targetId: "there-is-none" });
  }
}

const reaches = (follower: StreamFollower, count: number) =>
  until(`${count} commands`, () => (commandsIn(follower.told).length >= count ? true : undefined), 30_000);

/** Cuts each of them or leaves it, by chance, before every so many commands. */
const cutting =
  (followers: readonly StreamFollower[], every: number, chance: number) =>
  (number: number): void => {
    if (number % every !== 0) return;
    for (const follower of followers.filter(() => Math.random() < chance)) follower.cut();
  };

function expectWhole(follower: StreamFollower, sent: number): void {
  expect([wrongNumbers(follower.told), gapsIn(follower.told)]).toEqual([[], 0]);
  expect(commandsIn(follower.told)).toEqual(Array.from({ length: sent }, (_, at) => at + 1));
}

fault(
  "telemetry: a reader is cut at random, resumes at the other control, and one of the controls is killed",
  async (tell) => {
    const doomed = await bed.start("control", patient);
    const other = await bed.start("control", patient);
    await bed.start("node", patient);
    const lease = await lend(other);
    // Each goes on where the other control begins; a killed one refuses connections from then on.
    const followers = [
      new StreamFollower([doomed, other], lease.session_id),
      new StreamFollower([other, doomed], lease.session_id),
    ];
    onTestFinished(async () => {
      for (const follower of followers) await follower.stop();
    });
    const client = await connectRaw(
      lease.cdp_ws_url.replace(new URL(doomed.url).host, new URL(other.url).host),
    );
    await drive(client, 1000, cutting(followers, 20, 0.5));
    bed.gone(doomed);
    await doomed.end("SIGKILL");
    const watch = startWatch();
    await drive(client, 300, cutting(followers, 50, 1));
    for (const follower of followers) await reaches(follower, 1300);
    const recoveryMs = watch.since();
    for (const follower of followers) expectWhole(follower, 1300);
    await client.close();
    await other.call(`DELETE /browsers/${lease.session_id}`);
    for (const follower of followers) await follower.over;
    for (const follower of followers) expect(follower.opened.at(-1)).toBe(404);
    tell({
      saw: `every event once for both, over ${followers.map(({ opened }) => opened.length).join(" and ")} connections`,
      recoveryMs,
    });
  },
);

fault(
  "telemetry: a control with an open reader stands still (SIGSTOP), and its reader goes on there",
  async (tell) => {
    // A fast machine sends more in these 20 s than a session keeps by default.
    const roomy = { ...patient, telemetry: { max_session_bytes: 128 * 1024 * 1024 } };
    const paused = await bed.start("control", roomy);
    const other = await bed.start("control", roomy);
    await bed.start("node", roomy);
    const lease = await lend(other);
    const [here, there] = [
      new StreamFollower([paused], lease.session_id),
      new StreamFollower([other], lease.session_id),
    ];
    onTestFinished(async () => {
      for (const follower of [here, there]) await follower.stop();
    });
    const client = await connectRaw(
      lease.cdp_ws_url.replace(new URL(paused.url).host, new URL(other.url).host),
    );
    await drive(client, 50);
    for (const follower of [here, there]) await reaches(follower, 50);
    paused.signal("SIGSTOP");
    const stood = startWatch();
    let sent = 50;
    while (stood.since() < 20_000) {
      await drive(client, 100);
      sent += 100;
    }
    await reaches(there, sent);
    paused.signal("SIGCONT");
    const watch = startWatch();
    await reaches(here, sent);
    const recoveryMs = watch.since();
    for (const follower of [here, there]) expectWhole(follower, sent);
    expect(here.opened).toEqual([]);
    await client.close();
    tell({ saw: `${sent} commands told to both, over one connection each`, recoveryMs });
  },
);

fault("telemetry: a node is killed while its lease is read", async (tell) => {
  const settings = { node: { lost_after_ms: 4000 } };
  const control = await bed.start("control", settings);
  const node = await bed.start("node", settings);
  const lease = await lend(control);
  const follower = new StreamFollower([control], lease.session_id);
  onTestFinished(() => follower.stop());
  const client = await connectRaw(lease.cdp_ws_url);
  await drive(client, 50);
  await reaches(follower, 50);
  bed.gone(node);
  await node.end("SIGKILL");
  const watch = startWatch();
  await follower.over;
  const recoveryMs = watch.since();
  // Lost after 4 s, looked up each second, and two more for events that may still come.
  expectWhole(follower, 50);
  const { status, body } = await control.call(
    `GET /browsers/${lease.session_id}/telemetry/events?limit=100&category=control`,
  );
  expect([status, (body as unknown[]).length]).toEqual([200, 50]);
  tell({ saw: "its reader was ended, and reads its history still", recoveryMs });
});
