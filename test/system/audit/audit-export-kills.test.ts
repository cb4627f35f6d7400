import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  askFor,
  deliveredLines,
  destinationsPath,
  makeDestination,
  openExportFleet,
  recordedPaths,
} from "../../support/audit/export-fleet.js";
import { openStallingProxy, type Stalled, type StallingProxy } from "../../support/audit/stalling-proxy.js";
import { until } from "../../support/browser/chromium-until.js";

let fleet: Awaited<ReturnType<typeof openExportFleet>>;
let proxy: StallingProxy;
beforeAll(async () => {
  fleet = await openExportFleet();
  proxy = await openStallingProxy(fleet.cloud.s3Endpoint);
});
afterAll(async () => {
  await proxy.close();
  await fleet.close();
});

/** Texts that cannot be packed, so that an object is many times as long as what one packet takes. */
const longNames = (run: number): string[] =>
  Array.from({ length: 25 }, (_, index) => `run${run}-${index}-${randomBytes(600).toString("base64url")}`);

/** Before the body, anywhere in it, and where one byte of it is missing. */
const parts = [0, Math.random(), Math.random(), 1];

test("whoever is killed before or in an upload has the next one put the same object whole, and nothing is lost", async () => {
  const { cloud } = fleet;
  const stalled: Stalled[] = [];
  for (const [run, part] of parts.entries()) {
    const daemon = await fleet.startControl(`number${run}`, proxy.endpoint);
    const holding = proxy.stallAt(part);
    if (run === 0) {
      const made = await makeDestination(daemon);
      cloud.roles.set(made.role_arn, { externalId: made.external_id });
      await daemon.kernel().patch(`${destinationsPath}/${made.id}`, { body: { status: "active" } });
    }
    await askFor(daemon, longNames(run));
    stalled.push(await holding);
    await daemon.end("SIGKILL");
    proxy.drop();
  }

  const last = await fleet.startControl("last", proxy.endpoint);
  await askFor(last, ["run-last"]);
  const paths = await until("the last on record", async () => {
    const all = await recordedPaths(last);
    return all.includes("/browser_pools/run-last") ? all : undefined;
  });
  expect(paths.length).toBeGreaterThan(parts.length * 20);
  const lines = await deliveredLines(cloud, paths);
  expect(new Set(lines.map(({ event_id: id }) => id)).size).toBe(lines.length);

  const objects = await cloud.objects();
  for (const [run, { path, body, length }] of stalled.entries()) {
    const key = path.slice(cloud.bucket.length + 2);
    const puts = cloud.puts.filter((put) => put.key === key);
    const where = `killed at ${body.length} of ${length} bytes`;
    expect(
      puts.map(({ by }) => by),
      where,
    ).not.toContain(`number${run}`);
    expect(puts.length, where).toBeGreaterThan(0);
    const whole = objects.get(key) ?? Buffer.alloc(0);
    expect(whole.length, where).toBe(length);
    expect(whole.subarray(0, body.length).equals(body), where).toBe(true);
  }
  expect(cloud.faults).toEqual([]);
  expect((await last.end("SIGTERM")).code).toBe(0);
}, 300_000);
