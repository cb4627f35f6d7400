import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import { type Daemon, type Lease, startDaemon } from "../../support/daemon/daemon.js";
import { connectRaw, type RawCdp } from "../../support/gateway/raw-cdp.js";
import { readStored } from "../../support/telemetry/stored-events.js";

let daemon: Daemon;
beforeAll(async () => {
  daemon = await startDaemon();
});
afterAll(() => daemon.stop());

const on = { enabled: true };
const acquire = async (pool: string): Promise<Lease> => {
  const { status, body } = await daemon.call(`POST /browser_pools/${pool}/acquire`, {
    acquire_timeout_seconds: 30,
  });
  expect(status).toBe(200);
  return body as Lease;
};
const command = (client: RawCdp) => client.send("Target.activateTarget", { targetId: "there-is-none" });

/** Sends twenty commands at once, again and again, until `work` is over, which is told how many were. */
async function drivenDuring(
  clients: readonly RawCdp[],
  work: (sent: () => number) => Promise<unknown>,
): Promise<void> {
  const over = new AbortController();
  let sent = 0;
  const working = work(() => sent).finally(() => over.abort());
  const drive = async (client: RawCdp): Promise<void> => {
    for (; !over.signal.aborted; sent += 20)
      await Promise.all(Array.from({ length: 20 }, () => command(client)));
  };
  await Promise.all([working, ...clients.map(drive)]);
}

test("switched off and on 60 times under two clients, each command that is told is told once and in its order", async () => {
  await daemon.makePool({ name: "switched", telemetry: on });
  const lease = await acquire("switched");
  const clients = [await connectRaw(lease.cdp_ws_url), await connectRaw(lease.cdp_ws_url)];
  const switchAll = async (sent: () => number): Promise<void> => {
    for (let round = 0; round < 60; round += 1) {
      const telemetry = { enabled: round % 2 === 1 };
      const { status } = await daemon.call(`PATCH /browsers/${lease.session_id}`, { telemetry });
      expect(status).toBe(200);
      const before = sent();
      await until("commands of both after it", () => sent() >= before + 60);
    }
  };
  await drivenDuring(clients, switchAll);
  for (const client of clients) await client.close();
  const { events } = await until("both are gone", async () => {
    const stored = await readStored(daemon.place.dataDir, lease.lease_id);
    return stored.events.filter(({ type }) => type === "cdp_disconnect").length === 2 ? stored : undefined;
  });
  const told = events.filter(({ type }) => type === "cdp_command");
  // At least one of three batches after a PATCH began after it.
  expect(told.length).toBeGreaterThanOrEqual(30 * 20);
  expect(events.map(({ ts }) => ts)).toEqual(
    events.map(({ ts }) => ts).toSorted((one, other) => one - other),
  );
  for (const connection of new Set(told.map(({ data }) => data["connection_id"]))) {
    const ids = told
      .filter(({ data }) => data["connection_id"] === connection)
      .map(({ data }) => Number(data["command_id"]));
    expect(ids).toEqual([...new Set(ids)].toSorted((one, other) => one - other));
  }
  await daemon.call("POST /browser_pools/switched/release", { session_id: lease.session_id });
});

test("a browser that changes hands 20 times under its clients tells each holder of its own clients alone", async () => {
  await daemon.makePool({ name: "handed", telemetry: on });
  const leases: Lease[] = [];
  const commands: number[] = [];
  for (let turn = 0; turn < 20; turn += 1) {
    const lease = await acquire("handed");
    leases.push(lease);
    const client = await connectRaw(lease.cdp_ws_url);
    for (let sent = 0; sent < 20; sent += 1) await command(client);
    // It goes on sending while its lease ends, and after.
    const late = Array.from({ length: 200 }, () => command(client));
    void Promise.all(late).catch(() => {});
    const body = { session_id: lease.session_id };
    expect((await daemon.call("POST /browser_pools/handed/release", body)).status).toBe(204);
    await client.closed;
    commands.push(20 + late.length);
  }
  for (const [turn, { lease_id }] of leases.entries()) {
    const { events } = await until(`the end of lease ${turn}`, async () => {
      const stored = await readStored(daemon.place.dataDir, lease_id);
      return stored.events.some(({ type }) => type === "cdp_disconnect") ? stored : undefined;
    });
    const ids = (type: string) =>
      events.filter((event) => event.type === type).map(({ data }) => data["connection_id"]);
    const [connection] = ids("cdp_connect");
    expect([ids("cdp_connect"), ids("cdp_disconnect")]).toEqual([[connection], [connection]]);
    expect(new Set(ids("cdp_command"))).toEqual(new Set([connection]));
    expect(ids("cdp_command").length).toBeGreaterThanOrEqual(20);
    expect(ids("cdp_command").length).toBeLessThanOrEqual(commands[turn] ?? 0);
    expect(events.at(-1)?.type).toBe("cdp_disconnect");
  }
});

test("streams are opened and hung up a thousand times, and as many as may be are open afterwards", async () => {
  await daemon.makePool({ name: "opened", telemetry: on });
  const { session_id } = await acquire("opened");
  const open = (signal: AbortSignal) =>
    fetch(`${daemon.url}/browsers/${session_id}/telemetry/stream`, {
      headers: { authorization: `Bearer ${daemon.apiKey}` },
      signal,
    });
  const hangUp = async (place: number): Promise<void> => {
    const leaving = new AbortController();
    const opening = open(leaving.signal).catch(() => undefined);
    // Some leave before they are answered, some in the middle of it, some once they read.
    if (place % 3 !== 0) await opening;
    if (place % 3 === 2)
      await (
        await opening
      )?.body
        ?.getReader()
        .read()
        .catch(() => undefined);
    leaving.abort();
    await opening;
  };
  for (let round = 0; round < 100; round += 1)
    await Promise.all(Array.from({ length: 10 }, (_, place) => hangUp(round * 10 + place)));
  const all = new AbortController();
  const opened = await until("ten places", async () => {
    const answers = await Promise.all(Array.from({ length: 10 }, () => open(all.signal)));
    const isFull = answers.every(({ status }) => status === 200);
    if (!isFull) for (const { body } of answers) await body?.cancel();
    return isFull ? answers : undefined;
  });
  expect((await open(all.signal)).status).toBe(429);
  expect(opened).toHaveLength(10);
  all.abort();
  await daemon.call("POST /browser_pools/opened/release", { session_id });
});
